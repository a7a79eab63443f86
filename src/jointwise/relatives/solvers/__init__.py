"""Solvers that only the relatives of JUPAD use: arrays in, arrays out, run by `jointwise.solvers.solve`.

A `CoupledProblem` holds the masses of any subsets of variables, such as triples. Its factors are masses of states:

- `CoupledADMM` minimises the squared error, each block by `SimplexADMM`;
- `CoupledMirrorDescent` minimises the Kullback-Leibler divergence, each block by exponentiated gradient (`StepRule`).

`random_factors` draws a start for both.

A `ProjectionProblem` holds the masses of integer projections of states. `ProjectionEM` solves it, `ProjectionScoring`
finds the last digits, and `project` computes the exact masses of a known joint.

A `CharacteristicProblem` holds characteristic functions of triples, from `empirical_characteristic`.
`CharacteristicALS` solves it from a start by `random_characteristic`.
"""

from jointwise.relatives.solvers.admm import SimplexADMM
from jointwise.relatives.solvers.characteristic import (
    CharacteristicALS,
    CharacteristicProblem,
    empirical_characteristic,
    frequencies,
    random_characteristic,
)
from jointwise.relatives.solvers.coupled import CoupledADMM, CoupledMirrorDescent
from jointwise.relatives.solvers.coupled_problem import CoupledProblem, random_factors
from jointwise.relatives.solvers.descent import StepRule
from jointwise.relatives.solvers.projection_scoring import ProjectionScoring
from jointwise.relatives.solvers.projections import ProjectionEM, ProjectionProblem, cycle, project

__all__ = [
    "CharacteristicALS",
    "CharacteristicProblem",
    "CoupledADMM",
    "CoupledMirrorDescent",
    "CoupledProblem",
    "ProjectionEM",
    "ProjectionProblem",
    "ProjectionScoring",
    "SimplexADMM",
    "StepRule",
    "cycle",
    "empirical_characteristic",
    "frequencies",
    "project",
    "random_characteristic",
    "random_factors",
]
