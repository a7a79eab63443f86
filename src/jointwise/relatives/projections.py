"""Discrete joints from the 1-D marginals of random projections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from math import comb
from typing import Any, Literal, Self

import numpy as np

from jointwise._checks import check_integer, listed
from jointwise._typing import CodeArray, FloatArray, IntArray
from jointwise.axes import Axis, encode_rows
from jointwise.estimators._tables import generator
from jointwise.exceptions import InputError
from jointwise.marginals import Profile
from jointwise.relatives._base import DISCRETE, DISCRETE_ADVICE, JointRelative, Seed
from jointwise.relatives._runs import best_run, check_run, record
from jointwise.relatives._states import state_axes, state_density
from jointwise.relatives.solvers import ProjectionEM, ProjectionProblem, ProjectionScoring, cycle
from jointwise.solvers import solve, start_around
from jointwise.tables.variables import Kind, Schema, Variable

# n_projections="auto" takes one for each subset of variables, up to 10 per variable, or 20 in all if that is more.
SUBSETS_PER_VARIABLE, LEAST_SUBSETS = 10, 20
# With more subsets than this, they are drawn one by one, not taken from a list of all.
MOST_SUBSETS = 100_000
# Scoring steps at the end; skipped if their derivatives are more numbers than this, which would take too long.
SCORING_STEPS, MOST_DERIVATIVES = 20, 2**22
# Most numbers that a pass holds at once: half a gigabyte.
MOST_NUMBERS = 2**26


class ProjectionPMF(JointRelative):
    r"""Joint of discrete columns from the 1-D masses of random integer projections [1]_.

    States are coded :math:`x_n = 0, \dots, I_n - 1`. A projection :math:`y = \langle a, x \rangle` with integer
    coefficients has masses that are linear in the joint; for the low-rank joint :math:`\sum_r \lambda_r
    \prod_n A_n[x_n, r]` they are a mixture of convolutions,

    .. math:: p_a(y) = \sum_r \lambda_r \sum_{x : \langle a, x \rangle = y} \prod_n A_n[x_n, r].

    Weights and factors maximise the likelihood of the masses of all projections together.

    The idea is that of the reference: a joint of low rank, recovered from one-way marginals of random projections as
    in tomography. The rest is ours: sparse projections with integer coefficients, so that the masses need no
    interpolation; the composite likelihood of the projections as the objective; accelerated EM on it from several
    starts (:class:`jointwise.relatives.solvers.ProjectionEM`); and a few scoring steps at the end, which find the last
    digits if masses are exact (:class:`jointwise.relatives.solvers.ProjectionScoring`; skipped on large problems).

    Parameters
    ----------
    n_components : int
        Number of components F, the rank of the tensor.
    n_projections : int or "auto"
        Number of projections M. "auto" takes one for every subset of ``n_terms`` columns; if there are more than ten
        subsets per column (and more than twenty), it takes that many at random.
    n_terms : int
        Number of columns in one projection.
    max_coefficient : int or "auto"
        Coefficients are random integers of absolute value 1 to this; "auto" is twice the largest number of states.
    kinds : mapping of column names to kinds, optional
        Overrides the kind detected from the column's type.
    n_init : int
        Random starts; the run with the lowest objective is kept.
    max_iter : int
        Most EM steps of a start.
    tol : float
        A start ends when two steps in a row each lower the objective by no more than this, in nats.
    random_state : int, RandomState or None
        Draws the projections and the starts.

    Attributes
    ----------
    density_ : JointDensity
        One atom per state and column.
    vectors_ : array of shape (M, N)
        The coefficients a of the projections.
    objective_ : float
        Mean over projections of KL(observed || fitted).
    n_iter_ : int
        EM steps of the run kept.
    converged_ : bool
        Whether that run met its tolerance.

    Notes
    -----
    *What projections determine.* The characteristic function of y is that of the joint along a line,
    :math:`\phi_y(t) = \phi_x(t a)`, so all projections determine the joint, and finitely many a low-rank one. A
    projection of three columns with coefficients :math:`(1, I, I^2)` has a different value for each cell: it is the
    marginal of the triple. Marginals of all triples determine a low-rank joint in general (Kargas, Sidiropoulos
    & Fu 2018); those of pairs do not without further assumptions. With smaller coefficients cells share values: fewer
    numbers to store and estimate, each seen more often, but fewer equations. Coefficients up to 2 I keep some 40% of
    the equations of a triple of 5 states, and in trials the error was about a tenth above that of coefficients up to
    I^2. Projections of all columns at once, which look more like tomography, lost far more in their long sums. A
    number of components with more free numbers than there are equations is refused.

    A row is left out of the projections in which it has a missing cell.

    References
    ----------
    .. [1] J. Vora, K. S. Gurumoorthy, A. Rajwade: Recovery of joint probability distribution from one-way marginals:
       low rank tensors and random projections. IEEE Statistical Signal Processing Workshop, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from jointwise.relatives import ProjectionPMF
    >>> rng = np.random.default_rng(0)
    >>> hidden = rng.random(2000) < 0.5
    >>> X = (rng.random((2000, 4)) < np.where(hidden, 0.9, 0.2)[:, None]).astype(int)
    >>> model = ProjectionPMF(2, random_state=0).fit(X)
    >>> model.density_.mixture.weights.round(1), model.vectors_.shape
    (array([0.5, 0.5]), (4, 4))
    """

    _kinds_taken = DISCRETE
    _kind_advice = DISCRETE_ADVICE

    def __init__(
        self,
        n_components: int = 5,
        *,
        n_projections: int | Literal["auto"] = "auto",
        n_terms: int = 3,
        max_coefficient: int | Literal["auto"] = "auto",
        kinds: Mapping[str, str] | None = None,
        n_init: int = 5,
        max_iter: int = 1000,
        tol: float = 1e-6,
        random_state: Seed = None,
    ) -> None:
        self.n_components = n_components
        self.n_projections = n_projections
        self.n_terms = n_terms
        self.max_coefficient = max_coefficient
        self.kinds = kinds
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def fit_projections(self, vectors: Any, masses: Any, sizes: Sequence[int]) -> Self:
        """Fit from the masses of projections, without rows.

        Columns are called x0, x1, ... with categories 0, 1, ...; the parameters that draw projections are not used.

        Parameters
        ----------
        vectors : array-like of shape (M, N), integers
            Coefficients of the projections.
        masses : array-like of shape (M, L)
            Mass of each value of each projection, at position y modulo L, as
            :func:`jointwise.relatives.solvers.project` computes them for a known joint. L is at least the number of
            integers from a projection's smallest to its largest value.
        sizes : sequence of N int
            Number of states of each column.

        Examples
        --------
        >>> import numpy as np
        >>> from jointwise.relatives.solvers import project
        >>> joint = np.einsum("r,ir,jr,kr->ijk", [0.4, 0.6], *[[[0.9, 0.3], [0.1, 0.7]]] * 3)
        >>> vectors = [[1, 2, 3], [2, 1, -1]]
        >>> model = ProjectionPMF(2, random_state=0)
        >>> model = model.fit_projections(vectors, project(joint, np.array(vectors)), joint.shape)
        >>> bool(abs(model.density_.probability({"x0": 1, "x1": 1}) - joint[1, 1].sum()) < 1e-6)
        True
        """
        self._check_parameters()
        variables = tuple(
            Variable(f"x{n}", Kind.CATEGORICAL, categories=tuple(range(check_integer("sizes", size, 1))), dtype="int64")
            for n, size in enumerate(sizes)
        )
        schema = Schema(variables)
        problem = ProjectionProblem(tuple(sizes), np.asarray(vectors), np.asarray(masses, dtype=np.float64))
        axes = state_axes(schema, np.empty((0, len(schema))))
        margins = [np.full(size, 1 / size) for size in problem.sizes]
        self._fit_problem(problem, margins, schema, axes, generator(self.random_state))
        self._keep_schema(schema)
        return self

    def _check_parameters(self) -> None:
        check_integer("n_components", self.n_components, 1)
        check_integer("n_terms", self.n_terms, 1)
        for name in ("n_projections", "max_coefficient"):
            if getattr(self, name) != "auto":
                check_integer(name, getattr(self, name), 1)
        check_run(self.n_init, self.max_iter, self.tol)

    def _fit(self, rows: FloatArray, schema: Schema, profile: Profile) -> None:  # noqa: ARG002  # every value is a bin
        if len(schema) < self.n_terms:
            raise InputError(
                f"ProjectionPMF puts n_terms={self.n_terms} columns in each projection; got a table with only "
                f"{len(schema)} feature(s). Lower n_terms, or use PairwisePMF for pairs."
            )
        rng = generator(self.random_state)
        axes = state_axes(schema, rows)
        codes = encode_rows(rows, axes)
        sizes = [axis.n_bins for axis in axes]
        margins = [np.bincount(codes[:, n], minlength=size + 1)[:size] for n, size in enumerate(sizes)]
        problem = projection_problem(codes, sizes, self._vectors(schema, sizes, rng))
        shares = [margin / margin.sum() for margin in margins]
        self._fit_problem(problem, shares, schema, axes, rng)

    def _vectors(self, schema: Schema, sizes: Sequence[int], rng: np.random.Generator) -> IntArray:
        """Draw the projections, and refuse ones that leave out a column or take too much memory."""
        most = max(LEAST_SUBSETS, SUBSETS_PER_VARIABLE * len(sizes))
        every = min(comb(len(sizes), self.n_terms), most)
        n_projections = every if self.n_projections == "auto" else self.n_projections
        largest = 2 * max(sizes) if self.max_coefficient == "auto" else self.max_coefficient
        vectors = random_vectors(len(sizes), n_projections, self.n_terms, largest, rng)
        alone = [schema.names[n] for n in np.flatnonzero(~vectors.any(axis=0))]
        if alone:
            raise InputError(f"No projection holds columns {listed(alone)}: raise n_projections (now {n_projections}).")
        # masses given each component, and the positions before and after each state of each term
        held = max(self.n_components, 2 * self.n_terms * max(sizes))
        numbers = len(vectors) * cycle(sizes, vectors) * held
        if numbers > MOST_NUMBERS:
            raise InputError(
                f"{len(vectors)} projections with coefficients up to {largest} and up to {max(sizes)} states need too "
                f"much memory ({numbers} numbers). Lower max_coefficient or n_projections, or merge rare states."
            )
        return vectors

    def _fit_problem(
        self,
        problem: ProjectionProblem,
        margins: Sequence[FloatArray],
        schema: Schema,
        axes: Sequence[Axis],
        rng: np.random.Generator,
    ) -> None:
        per_component = sum(problem.sizes) - len(problem.sizes) + 1
        self._check_n_components(
            self.n_components,
            max(1, (problem.n_equations + 1) // per_component),
            f"the projections give {problem.n_equations} equations and each component has {per_component} free numbers",
        )
        starts = [start_around(margins, self.n_components, rng) for _ in range(self.n_init)]
        best = best_run((ProjectionEM(start, tol=self.tol) for start in starts), problem, self.max_iter)
        if problem.masses.size * (1 + sum(problem.sizes)) * self.n_components <= MOST_DERIVATIVES:
            last = solve(ProjectionScoring(best.value), problem, max_steps=SCORING_STEPS)
            best = replace(best, value=last.value, history=np.append(best.history, last.history[1:]))
        self.density_ = state_density(schema, axes, best.value)
        self.vectors_ = problem.vectors
        record(self, best)


def random_vectors(
    n_variables: int, n_projections: int, n_terms: int, largest: int, rng: np.random.Generator
) -> IntArray:
    """Return coefficients of random projections, shape (M, N); every subset is used once before any is used again.

    Parameters
    ----------
    n_variables, n_projections : int
    n_terms : int
        Number of coefficients that are not zero.
    largest : int
        Absolute values are uniform on 1 to this; signs are random.
    rng : numpy.random.Generator
    """
    if comb(n_variables, n_terms) <= MOST_SUBSETS:
        subsets = np.array(list(combinations(range(n_variables), n_terms)))
        order = np.concatenate([rng.permutation(len(subsets)) for _ in range(-(-n_projections // len(subsets)))])
        chosen = subsets[order[:n_projections]]
    else:  # with this many, none is likely to be drawn twice
        chosen = np.array([rng.choice(n_variables, n_terms, replace=False) for _ in range(n_projections)])
    drawn = rng.integers(1, largest + 1, chosen.shape) * rng.choice([-1, 1], chosen.shape)
    vectors = np.zeros((n_projections, n_variables), dtype=np.int64)
    np.put_along_axis(vectors, chosen, drawn, axis=1)
    return vectors


def projection_problem(codes: CodeArray, sizes: Sequence[int], vectors: IntArray) -> ProjectionProblem:
    """Return the masses of projections of coded rows (n, N), each over the rows without a gap in its variables."""
    length = cycle(sizes, vectors)
    counts = np.zeros((len(vectors), length))
    for m, vector in enumerate(vectors):
        used = np.flatnonzero(vector)
        part = codes[:, used]
        whole = part[(part < np.asarray(sizes)[used]).all(axis=1)].astype(np.int64)
        counts[m] = np.bincount((whole @ vector[used]) % length, minlength=length)
    n_rows = counts.sum(axis=1)
    if not n_rows.all():
        raise InputError(
            "For one of the projections, no row has values in all of its columns. Lower n_terms, drop columns that are "
            "mostly missing, or add rows."
        )
    return ProjectionProblem(tuple(sizes), vectors, counts / n_rows[:, None], n_rows)
