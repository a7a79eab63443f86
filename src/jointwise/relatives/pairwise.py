"""PairwisePMF: the joint of discrete columns from their pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Self

import numpy as np

from jointwise._checks import check_choice, check_integer, check_real
from jointwise._typing import FloatArray
from jointwise.axes import encode_rows
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.fitting.problem import pairwise_problem
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.relatives._base import DISCRETE, DISCRETE_ADVICE, JointRelative, Seed
from jointwise.relatives._runs import check_run, record
from jointwise.relatives._states import state_axes, state_density
from jointwise.relatives.solvers import CoupledMirrorDescent, CoupledProblem, StepRule
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Factors, PairwiseProblem, RowsEM, RowsProblem, Solution, solve, split_factors
from jointwise.solvers.pairs_successive_projection import Groups, best_split, even_splits, most_split_components
from jointwise.tables.variables import Kind, Schema

METHODS = ("spa", "opt", "em")
# The published steps of the refinement by divergence.
FACTOR_RULE = StepRule(rate=0.1, shrink=0.3, decrease=1e-4, max_steps=200, tol=1e-6)
WEIGHT_RULE = StepRule(rate=0.1, shrink=0.3, decrease=1e-4, max_steps=50, tol=1e-6)


class PairwisePMF(JointRelative):
    r"""Joint mass of discrete columns from their pairs alone, by coupled non-negative matrix factorisation [1]_.

    .. math:: p(x) = \sum_r \lambda_r \prod_n A_n[x_n, r], \qquad \hat Z_{jk} \approx A_j \Lambda A_k^\top

    The columns are split into two groups, and the pair masses across are stacked into
    :math:`X = [\hat Z_{jk}]_{j \in 1, k \in 2} = W H^\top`, with the :math:`A_j` stacked in W and the
    :math:`A_k \Lambda` in H. If every component has a state in the second group that no other component takes
    (separability), the columns of W are among those of X: successive projection finds them, and non-negative least
    squares gives H. From exact pairs the joint is then found exactly.

    As published: the split, the projection that takes the larger column among ties, the divergence of the refinement
    and its steps, EM from there. Ours: H by an exact solver (the published projected gradient depends on its random
    start); scales averaged over blocks; several splits, and the one with the smallest squared error of all pairs is
    kept; weights estimated like the rest; EM accelerated and stopped by the likelihood; no floor inside the divergence.

    Parameters
    ----------
    n_components : int
        Number of components F, at most the number of states in either group of columns.
    method : "spa", "opt" or "em"
        "spa" is successive projection (CNMF-SPA). From there "opt" lowers the divergence of all pairs by mirror descent
        (CNMF-OPT), and "em" raises the likelihood of the rows by EM (SPA-EM).
    split : int, optional
        Number of columns in the first group, taken from the first on, as published (3 or 5). By default `n_init`
        random splits, as even as possible, are tried.
    floor : float
        Smaller entries of the factors that "opt" and "em" start from are raised to this, since neither can leave zero.
    kinds : mapping of column names to "integer", "categorical" or "ordinal", optional
        Overrides the kind detected from the column's type.
    n_init : int
        Random splits to try if `split` is not given.
    max_iter : int
        Most sweeps of "opt", or steps of "em".
    tol : float
        Stop "opt" when a sweep changes the divergence by no more than this share of it, and "em" when two steps in a
        row each gain no more than this in nats per row.
    random_state : int, RandomState or None
        Draws the splits, and components beyond those the pairs can hold.

    Attributes
    ----------
    density_ : JointDensity
        With `n_components` components and one atom for each state.
    objective_ : float
        Squared error of all pairs ("spa"), their divergence ("opt"), or negative log-likelihood of a row minus that of
        independence ("em").
    n_iter_, converged_
        Steps of the last stage, and whether it met its tolerance.

    References
    ----------
    .. [1] S. Ibrahim, X. Fu: Recovering Joint Probability of Discrete Random Variables from Pairwise Marginals. IEEE
       Transactions on Signal Processing 69, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.relatives import PairwisePMF
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.random((2000, 1)) < 0.5
    >>> X = (rng.random((2000, 4)) < np.where(hidden, 0.95, 0.05)).astype(int)
    >>> density = PairwisePMF(2, random_state=0).fit(X).density_
    >>> round(density.condition({"x0": 1}).probability({"x3": 1}), 1)
    0.9
    """

    _kinds_taken: ClassVar[frozenset[Kind]] = DISCRETE
    _kind_advice: ClassVar[str] = DISCRETE_ADVICE
    _least_columns: ClassVar[int] = 2

    def __init__(
        self,
        n_components: int = 5,
        *,
        method: str = "opt",
        split: int | None = None,
        floor: float = 1e-6,
        kinds: Mapping[str, str] | None = None,
        n_init: int = 8,
        max_iter: int = 200,
        tol: float = 1e-6,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.split = split
        self.floor = floor
        self.kinds = kinds
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit_marginals(self, marginals: PairwiseMarginals) -> Self:
        """Fit from counts or exact masses of pairs, without rows; ``method="em"`` needs rows and is refused.

        Parameters
        ----------
        marginals : PairwiseMarginals
            Of discrete variables, with a bin for each value; masses in place of counts are exact marginals.
        """
        self._check_parameters()
        if self.method == "em":
            raise InputError('method="em" reads rows, so it cannot be fitted from pairs; use method="opt" or fit.')
        self._check_columns(marginals.schema)
        self._fit_pairs(marginals, None)
        self._keep_schema(marginals.schema)
        return self

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("method", self.method, METHODS)
        if self.split is not None:
            check_integer("split", self.split, 1)
        if not 0 < check_real("floor", self.floor) < 1:
            raise InputError(f"`floor` must be a small positive number, below 1; got {self.floor!r}.")
        check_run(self.n_init, self.max_iter, self.tol)

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # every value is a bin
        axes = state_axes(schema, rows)
        coded = CodedRows(schema, axes, encode_rows(rows, axes))
        self._fit_pairs(PairwiseMarginals.from_codes(coded.codes, schema, axes), coded)

    def _fit_pairs(self, marginals: PairwiseMarginals, coded: CodedRows | None) -> None:
        """Fit by successive projection, on the given split or the best of several, then refine; "em" needs the rows."""
        problem = pairwise_problem(marginals, [np.eye(axis.n_bins) for axis in marginals.axes])
        rng = generator(self.random_state)
        splits = self._splits(problem.sizes, rng)
        found = [split_factors(problem, problem.pairs, self.n_components, groups, rng) for groups in splits]
        solution = best_split(problem, found)
        if self.method == "opt":
            solution = self._refined(problem, solution.value)
        elif coded is not None and self.method == "em":
            solution = self._polished(problem, coded, solution.value)
        self.density_ = state_density(marginals.schema, marginals.axes, solution.value)
        record(self, solution)

    def _splits(self, sizes: Sequence[int], rng: np.random.Generator) -> list[Groups]:
        if self.split is None:
            self._check_n_components(
                self.n_components, most_split_components(sizes), "the states of the smaller group of columns"
            )
            return even_splits(sizes, self.n_init, rng)
        if self.split >= len(sizes):
            raise InputError(f"`split` must leave columns for the second group: below {len(sizes)}; got {self.split}.")
        groups = (tuple(range(self.split)), tuple(range(self.split, len(sizes))))
        most = min(sum(sizes[n] for n in group) for group in groups)
        self._check_n_components(
            self.n_components, most, f"the states of the smaller group of columns with split={self.split}"
        )
        return [groups]

    def _refined(self, problem: PairwiseProblem, start: Factors) -> Solution[Factors]:
        coupled = CoupledProblem(problem.sizes, dict(problem.pairs.items()))
        solver = CoupledMirrorDescent(self._raised(start), FACTOR_RULE, WEIGHT_RULE, self.tol)
        return solve(solver, coupled, max_steps=self.max_iter)

    def _polished(self, problem: PairwiseProblem, rows: CodedRows, start: Factors) -> Solution[Factors]:
        likelihood = RowsProblem(
            problem.masses, problem.settled_margins, rows.canonical().engine(), rows.n_rows, beta=0.0
        )
        return solve(RowsEM(self._raised(start), self.tol), likelihood, max_steps=self.max_iter)

    def _raised(self, factors: Factors) -> Factors:
        """Return factors and weights raised to `floor`, then scaled to sum one again."""
        weights, *coefficients = (np.maximum(a, self.floor) for a in (factors.weights, *factors.coefficients))
        return Factors(weights / weights.sum(), tuple(a / a.sum(axis=0) for a in coefficients))
