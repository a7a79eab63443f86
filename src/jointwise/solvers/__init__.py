"""Numerical solvers: arrays in, arrays out.

A `PairwiseProblem` holds the masses of observed pairs of variables and of the atoms on their bins; a solver
is a record of settings, and `solve` runs it. Which to pick:

- `simplex_weights`: the weights of a 1-D mixture, from the counts of one variable;
- `PairwiseEM`: all factors from pair masses by composite likelihood; quick, no rates to choose;
- `MirrorDescentPairs`, then `split_starts`, then `AlternatingMirrorDescent`: the three stages of JUPAD as
  published, least squares on pair masses.

`random_start` and `split_starts` give factors to start from.

A `CoupledProblem` holds the masses of any subsets of variables, such as triples, for factors without atoms:

- `CoupledADMM`: least squares, each block by `SimplexADMM`;
- `CoupledMirrorDescent`: Kullback-Leibler divergence, each block by exponentiated gradient (`descend`).

`random_factors` gives a start for both.

A `ProjectionProblem` holds the masses of integer projections of states, solved by `ProjectionEM`, its last digits by
`ProjectionScoring`; `project` makes exact ones from a known joint.

A `CharacteristicProblem` holds characteristic functions of triples, solved by `CharacteristicALS`.
"""

from jointwise.solvers.admm import SimplexADMM, Split
from jointwise.solvers.alternating import AlternatingMirrorDescent
from jointwise.solvers.base import Reached, Solution, Solver, Status, solve
from jointwise.solvers.characteristic import (
    CharacteristicALS,
    CharacteristicFactors,
    CharacteristicProblem,
    empirical_characteristic,
    frequencies,
    random_characteristic,
)
from jointwise.solvers.coupled import CoupledADMM, CoupledMirrorDescent
from jointwise.solvers.coupled_problem import CoupledProblem, random_factors
from jointwise.solvers.expectation_maximization import (
    PairwiseEM,
    marginal_coefficients,
    mean_log_likelihood,
    pairwise_divergence,
    random_start,
    simplex_weights,
    start_around,
)
from jointwise.solvers.likelihood import LikelihoodProblem, PosteriorEM
from jointwise.solvers.mirror_descent import MirrorDescentPairs
from jointwise.solvers.problem import Factors, PairwiseProblem
from jointwise.solvers.projection_scoring import ProjectionScoring
from jointwise.solvers.projections import ProjectionEM, ProjectionProblem, cycle, project
from jointwise.solvers.simplex import StepRule, descend, project_on_simplex
from jointwise.solvers.successive_projection import (
    nonnegative_least_squares,
    split_factors,
    split_start,
    split_starts,
    successive_projection,
)

__all__ = [
    "AlternatingMirrorDescent",
    "CharacteristicALS",
    "CharacteristicFactors",
    "CharacteristicProblem",
    "CoupledADMM",
    "CoupledMirrorDescent",
    "CoupledProblem",
    "Factors",
    "LikelihoodProblem",
    "MirrorDescentPairs",
    "PairwiseEM",
    "PairwiseProblem",
    "PosteriorEM",
    "ProjectionEM",
    "ProjectionProblem",
    "ProjectionScoring",
    "Reached",
    "SimplexADMM",
    "Solution",
    "Solver",
    "Split",
    "Status",
    "StepRule",
    "cycle",
    "descend",
    "empirical_characteristic",
    "frequencies",
    "marginal_coefficients",
    "mean_log_likelihood",
    "nonnegative_least_squares",
    "pairwise_divergence",
    "project",
    "project_on_simplex",
    "random_characteristic",
    "random_factors",
    "random_start",
    "simplex_weights",
    "solve",
    "split_factors",
    "split_start",
    "split_starts",
    "start_around",
    "successive_projection",
]
