"""The algorithms of JUPAD and of Gaussian blocks: arrays in, arrays out.

A solver is a record of settings, and `solve` runs it on a problem. Which to pick:

- `simplex_weights`: the weights of a 1-D mixture, from the counts of one variable;
- `RowsEM`: all factors from rows, as a `RowsProblem`, by penalised likelihood;
- `BlocksEM`: a mixture with a Gaussian block from rows, as a `BlocksProblem`, by penalised likelihood;
- `PairwiseEM`: all factors from pair masses, as a `PairwiseProblem`, by composite likelihood;
- `MirrorDescentPairs`, then `split_starts`, then `AlternatingMirrorDescent`: the three stages of JUPAD as
  published, least squares on pair masses.

`random_start`, `start_around` and `split_starts` give factors to start from.
"""

from jointwise.solvers.base import Reached, Solution, Solver, Status, solve
from jointwise.solvers.blocks_em import BlockFactors, BlocksEM, BlocksProblem
from jointwise.solvers.factors import Factors
from jointwise.solvers.pairs_alternating import AlternatingMirrorDescent
from jointwise.solvers.pairs_em import PairwiseEM
from jointwise.solvers.pairs_mirror_descent import MirrorDescentPairs
from jointwise.solvers.pairs_problem import PairwiseProblem
from jointwise.solvers.pairs_successive_projection import split_factors, split_starts
from jointwise.solvers.rows_em import RowsEM, RowsProblem
from jointwise.solvers.simplex import mean_log_likelihood, simplex_weights
from jointwise.solvers.starts import random_start, start_around

__all__ = [
    "AlternatingMirrorDescent",
    "BlockFactors",
    "BlocksEM",
    "BlocksProblem",
    "Factors",
    "MirrorDescentPairs",
    "PairwiseEM",
    "PairwiseProblem",
    "Reached",
    "RowsEM",
    "RowsProblem",
    "Solution",
    "Solver",
    "Status",
    "mean_log_likelihood",
    "random_start",
    "simplex_weights",
    "solve",
    "split_factors",
    "split_starts",
    "start_around",
]
