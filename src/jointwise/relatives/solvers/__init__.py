"""Solvers that only the relatives of JUPAD use: arrays in, arrays out, run by `jointwise.solvers.solve`.

A `CoupledProblem` holds the masses of any subsets of variables, such as triples, for factors without atoms:

- `CoupledADMM`: least squares, each block by `SimplexADMM`;
- `CoupledMirrorDescent`: Kullback-Leibler divergence, each block by exponentiated gradient (`descend`).

`random_factors` gives a start for both.

A `ProjectionProblem` holds the masses of integer projections of states, solved by `ProjectionEM`, its last digits by
`ProjectionScoring`; `project` makes exact ones from a known joint.

A `CharacteristicProblem` holds characteristic functions of triples, solved by `CharacteristicALS`.
"""

from jointwise.relatives.solvers.admm import SimplexADMM, Split
from jointwise.relatives.solvers.characteristic import (
    CharacteristicALS,
    CharacteristicFactors,
    CharacteristicProblem,
    empirical_characteristic,
    frequencies,
    random_characteristic,
)
from jointwise.relatives.solvers.coupled import CoupledADMM, CoupledMirrorDescent
from jointwise.relatives.solvers.coupled_problem import CoupledProblem, random_factors
from jointwise.relatives.solvers.projection_scoring import ProjectionScoring
from jointwise.relatives.solvers.projections import ProjectionEM, ProjectionProblem, cycle, project
from jointwise.relatives.solvers.simplex import StepRule, descend, project_on_simplex

__all__ = [
    "CharacteristicALS",
    "CharacteristicFactors",
    "CharacteristicProblem",
    "CoupledADMM",
    "CoupledMirrorDescent",
    "CoupledProblem",
    "ProjectionEM",
    "ProjectionProblem",
    "ProjectionScoring",
    "SimplexADMM",
    "Split",
    "StepRule",
    "cycle",
    "descend",
    "empirical_characteristic",
    "frequencies",
    "project",
    "project_on_simplex",
    "random_characteristic",
    "random_factors",
]
