"""PairwisePMF: the joint of discrete columns from their pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from jointwise._checks import check_choice, check_integer, check_real
from jointwise._typing import FloatArray
from jointwise.axes import encode_rows
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.fitting.pairs import pairwise_problem
from jointwise.marginals import PairwiseMarginals, Profile
from jointwise.relatives._base import DISCRETE, SEEDS, JointRelative
from jointwise.relatives._states import state_axes, state_density
from jointwise.relatives._triples import record
from jointwise.relatives.solvers.coupled import CoupledMirrorDescent
from jointwise.relatives.solvers.coupled_problem import CoupledProblem
from jointwise.relatives.solvers.simplex import StepRule
from jointwise.rows.coded import CodedRows
from jointwise.solvers import Factors, PairwiseProblem, RowsEM, RowsProblem, Solution, solve, split_factors
from jointwise.solvers.pairs_successive_projection import Groups, best_split, even_splits, most_split_components
from jointwise.tables.variables import Kind, Schema

METHODS = ("spa", "opt", "em")
# As published for the refinement by divergence.
FACTOR_RULE = StepRule(rate=0.1, shrink=0.3, decrease=1e-4, max_steps=200, tol=1e-6)
WEIGHT_RULE = StepRule(rate=0.1, shrink=0.3, decrease=1e-4, max_steps=50, tol=1e-6)


class PairwisePMF(JointRelative):
    r"""Joint mass of discrete columns from their pairs alone, by coupled non-negative matrix factorisation [1]_.

    .. math:: p(x) = \sum_r \lambda_r \prod_n A_n[x_n, r], \qquad \hat Z_{jk} \approx A_j \Lambda A_k^\top

    The columns are split into two groups, and the pair masses across are stacked into
    :math:`X = [\hat Z_{jk}]_{j \in 1, k \in 2} = W H^\top`, with the :math:`A_j` stacked in W and the
    :math:`A_k \Lambda` in H. Where every component has a state of its own in the second group, one that no other
    component takes (separability), the columns of W are among those of X: successive projection finds them, and
    non-negative least squares gives H. From exact pairs the joint is then found exactly.

    As published: the split, the projection with its choice of the larger column between ties, the divergence of the
    refinement and its steps, EM from there. Ours: H by an exact solver, where the published projected gradient depends
    on its random start; scales of blocks averaged; several splits, of which the one with the smallest squared error
    of all pairs is kept; weights estimated like the rest; EM accelerated and stopped by the likelihood; no floor inside
    the divergence.

    Parameters
    ----------
    n_components : int
        Number of components F, no more than states in either group of columns.
    method : "spa", "opt" or "em"
        Successive projection (CNMF-SPA); from there the divergence of all pairs by mirror descent (CNMF-OPT); or from
        there the likelihood of the rows by EM (SPA-EM).
    split : int, optional
        Put the first so many columns in the first group, as published (3 or 5). By default `n_init` random splits,
        as even as can be, are tried.
    floor : float
        Factors that "opt" and "em" start from are raised to this and rescaled, since neither can leave zero.
    kinds : mapping of column names to "integer", "categorical" or "ordinal", optional
        Overrides what is found from the column's type.
    n_init : int
        Random splits to try where `split` is not given.
    max_iter : int
        The most sweeps of "opt", or steps of "em".
    tol : float
        Stop "opt" when a sweep changes the divergence by no more than this share of it, and "em" when two steps in a
        row each gain no more than this in nats per row.
    random_state : int, RandomState or None
        Draws the splits, and components beyond those that the pairs hold.

    Attributes
    ----------
    density_ : JointDensity
        Of `n_components` components, with one atom for each state.
    objective_ : float
        Squared error of all pairs ("spa"), their divergence ("opt"), or negative log-likelihood of a row, less that of
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
    _kind_advice: ClassVar[str] = "Bin it first, or use CPD3 or JUPAD."
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
        random_state: SEEDS = None,
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
        """Fit from counts or exact masses of pairs; no row is needed, so ``method="em"`` is not to be had.

        Parameters
        ----------
        marginals : PairwiseMarginals
            Of discrete variables, a bin for each value. Exact marginals (n = infinity) are masses in place of counts.
        """
        self._check_parameters()
        if self.method == "em":
            raise InputError('method="em" reads rows, so it cannot be fitted from pairs; use method="opt" or fit.')
        self._check_columns(marginals.schema)
        problem, start = self._projected(marginals)
        solution = start if self.method == "spa" else self._refined(problem, start.value)
        self._keep(marginals.schema, marginals.axes, solution)
        self.schema_ = marginals.schema
        self._record_names(marginals.schema)
        return self

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_choice("method", self.method, METHODS)
        if self.split is not None:
            check_integer("split", self.split, 1)
        if not 0 < check_real("floor", self.floor) < 1:
            raise InputError(f"`floor` must be a small positive number, below 1; got {self.floor!r}.")
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        if check_real("tol", self.tol) < 0:
            raise InputError(f"`tol` must not be negative; got {self.tol!r}.")

    def _given_kinds(self) -> Mapping[str, str] | None:
        return self.kinds

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # every value is a bin
        axes = state_axes(schema, rows)
        coded = CodedRows(schema, axes, encode_rows(rows, axes))
        problem, start = self._projected(PairwiseMarginals.from_codes(coded.codes, schema, axes))
        solution = start
        if self.method == "opt":
            solution = self._refined(problem, start.value)
        elif self.method == "em":
            solution = self._polished(problem, coded, start.value)
        self._keep(schema, axes, solution)

    def _projected(self, marginals: PairwiseMarginals) -> tuple[PairwiseProblem, Solution[Factors]]:
        """Factors by successive projection, on the given split or the best of several."""
        problem = pairwise_problem(marginals, [np.eye(axis.n_bins) for axis in marginals.axes])
        rng = generator(self.random_state)
        splits = self._splits(problem.sizes, rng)
        found = [split_factors(problem, problem.pairs, self.n_components, groups, rng) for groups in splits]
        return problem, best_split(problem, found)

    def _splits(self, sizes: Sequence[int], rng: np.random.Generator) -> list[Groups]:
        if self.split is None:
            self._check_rank(
                self.n_components, most_split_components(sizes), "the states of the smaller group of columns"
            )
            return even_splits(sizes, self.n_init, rng)
        if self.split >= len(sizes):
            raise InputError(f"`split` must leave columns for the second group: below {len(sizes)}; got {self.split}.")
        groups = (tuple(range(self.split)), tuple(range(self.split, len(sizes))))
        most = min(sum(sizes[n] for n in group) for group in groups)
        self._check_rank(self.n_components, most, f"the states of the smaller group of columns with split={self.split}")
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
        """Factors and weights of at least about `floor`, summing to one again."""
        weights, *coefficients = (np.maximum(a, self.floor) for a in (factors.weights, *factors.coefficients))
        return Factors(weights / weights.sum(), tuple(a / a.sum(axis=0) for a in coefficients))

    def _keep(self, schema: Schema, axes: Sequence[Any], solution: Solution[Factors]) -> None:
        self.density_ = state_density(schema, axes, solution.value)
        record(self, solution)
