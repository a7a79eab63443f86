"""What a density asks of a mixture: the contract of an expert."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from jointwise._typing import FloatArray, IntArray
from jointwise.axes import Axis
from jointwise.dictionary import Dictionary
from jointwise.joint.atom_kinds import AtomKinds
from jointwise.joint.conditionals import Conditionals
from jointwise.joint.events import Region
from jointwise.joint.margin import Margin, weighted

# Rows evaluated at once: the table of one block (rows x atoms or components) stays within a few megabytes.
BLOCK = 16_384


class Expert(ABC):
    """A mixture that answers questions about encoded values, without names.

    A :class:`jointwise.JointDensity` rests on one expert, which may be the sum of several. Each is closed under
    `marginal` and `condition`, and conditioning reweighs its components by the likelihood of the event.

    Attributes
    ----------
    weights : array of shape (F,)
        Mixing weights of the components, on the simplex.
    """

    KIND: ClassVar[str]
    """Name of the kind in files."""

    weights: FloatArray

    @property
    @abstractmethod
    def n_variables(self) -> int:
        """Number of variables N."""

    @property
    def n_components(self) -> int:
        """Number of components F."""
        return len(self.weights)

    @property
    def has_independent_components(self) -> bool:
        """Whether the variables are independent given the component, so that `factor` tells all of it."""
        return False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.n_variables} variables, {self.n_components} components)"

    # ---- density -----------------------------------------------------------------------------------------

    @abstractmethod
    def component_logpdf(self, X: FloatArray) -> FloatArray:
        """Return log lam[r] + log f(x | r) of encoded rows (n, N), missing cells integrated out; shape (n, F)."""

    def logpdf(self, X: FloatArray) -> FloatArray:
        """Log-density of encoded rows ``X`` of shape (n, N), missing cells integrated out; shape (n,)."""
        return in_blocks(lambda rows: np.asarray(logsumexp(self.component_logpdf(rows), axis=1)), X)

    @abstractmethod
    def cdf(self, X: FloatArray) -> FloatArray:
        """P(X_1 <= x_1, ..., X_N <= x_N), missing cells integrated out; shape (n,)."""

    @abstractmethod
    def pdf_table(self, points: Sequence[FloatArray]) -> FloatArray:
        """Density at every combination of points, one array of points per variable; of one or two variables only."""

    def without_impossible_cells(self, X: FloatArray) -> FloatArray:
        """Empty, from left to right, each cell that would make the density of its row zero; shape (n, N)."""
        X = X.copy()
        for n in range(self.n_variables):  # first, what no row can hold
            alone = self.marginal([n]).logpdf(X[:, [n]])
            X[np.isneginf(alone), n] = np.nan
        rows = np.flatnonzero(np.isneginf(self.logpdf(X)))  # then cells that contradict those before them
        for n in range(1, self.n_variables if len(rows) else 0):
            so_far = self.marginal(range(n + 1)).logpdf(X[rows, : n + 1])
            X[rows[np.isneginf(so_far)], n] = np.nan
        return X

    # ---- one variable ------------------------------------------------------------------------------------

    @abstractmethod
    def factor(self, n: int) -> tuple[Dictionary, FloatArray]:
        """Law of variable ``n`` given each component: atoms, and their weights of shape (atoms, F)."""

    def dictionary(self, n: int) -> Dictionary:
        """Atoms of variable ``n``. Of a continuous one, all point masses are among them, even without weight."""
        return self.factor(n)[0]

    def atom_kinds(self, n: int) -> AtomKinds:
        """Kinds of the atoms that `dictionary` has, which may be known without making them."""
        return AtomKinds.of(self.dictionary(n))

    def margin(self, n: int) -> Margin:
        """Law of variable ``n`` alone: its cdf, quantiles, mode and moments."""
        dictionary, coefficients = self.factor(n)
        return Margin(dictionary, np.asarray(coefficients @ self.weights))

    def component_means(self, n: int) -> FloatArray:
        """E[X_n | component], NaN where an atom in use has no mean; shape (F,)."""
        dictionary, coefficients = self.factor(n)
        return weighted(coefficients, dictionary.mean())

    def component_masses(self, n: int, axis: Axis) -> FloatArray:
        """Probability of each bin of an axis of variable ``n`` given each component; shape (n_bins, F)."""
        dictionary, coefficients = self.factor(n)
        return dictionary.mixed_masses(axis, coefficients)

    @abstractmethod
    def conditionals(self, n: int, X: FloatArray) -> Conditionals:
        """Law of variable ``n`` in each encoded row, given the row's other cells; its own cell is ignored.

        In a row whose other cells have density zero it is any law of the variable.
        """

    def gaps(self, X: FloatArray) -> Iterator[tuple[int, IntArray, Conditionals]]:
        """Yield each variable with missing cells, the rows that miss it, and its law in those rows."""
        for n in range(self.n_variables):
            rows = np.flatnonzero(np.isnan(X[:, n]))
            if rows.size:
                yield n, rows, self.conditionals(n, X[rows])

    # ---- events ------------------------------------------------------------------------------------------

    @abstractmethod
    def log_probability(self, event: Mapping[int, Region]) -> float:
        """Log-probability of a box, given as a region for some of the variables."""

    @abstractmethod
    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
        """Probability of each combination of regions, one dimension per variable of ``regions``.

        An interval does not count the points that are regions of their own.
        """

    def pair_tables(
        self, regions: Mapping[int, Sequence[Region]], pairs: Sequence[tuple[int, int]]
    ) -> list[FloatArray]:
        """`crosstab` of each of many pairs of different variables, in the order of the pair.

        What is found of a single variable serves all its pairs.
        """
        return [self.crosstab({a: regions[a], b: regions[b]}) for a, b in pairs]

    @abstractmethod
    def marginal(self, keep: Sequence[int]) -> Expert:
        """Expert of the variables at the positions ``keep``."""

    @abstractmethod
    def condition(self, event: Mapping[int, Region]) -> Expert:
        """Expert given ``event``; a point takes its variable out, an interval or a set truncates it."""

    def given(self, event: Mapping[int, Region]) -> tuple[float, Expert]:
        """Log-probability of an event without points, and the expert given it."""
        return self.log_probability(event), self.condition(event)

    # ---- moments and samples -----------------------------------------------------------------------------

    @abstractmethod
    def covariance(self) -> FloatArray:
        """Covariance matrix; shape (N, N)."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""

    @abstractmethod
    def complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Encoded rows with the missing cells of each drawn together, given its observed cells; shape (n, N).

        If a row has density zero, its impossible cells are ignored: see `without_impossible_cells`.
        """

    # ---- sums and plain form -----------------------------------------------------------------------------

    @property
    def merge_key(self) -> Hashable:
        """Experts of one class with equal keys can be merged by `mix`; with None, an expert cannot."""
        return None

    @classmethod
    def mix(cls, experts: Sequence[Any], weights: FloatArray) -> Expert | None:
        """Weighted sum of experts of this class with equal `merge_key`, as one; None if that is not worthwhile."""
        raise NotImplementedError  # a class with keys has its own

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values and arrays, which a file can hold, with the ``kind`` of expert."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Expert:
        """Read what `to_dict` returned, with every part checked."""
        raise NotImplementedError  # a kind that is written to files has its own


def in_blocks(function: Callable[[FloatArray], FloatArray], X: FloatArray, size: int = BLOCK) -> FloatArray:
    """Values of ``function`` for the rows of ``X``, ``size`` rows at a time."""
    return np.concatenate([function(X[start : start + size]) for start in range(0, max(len(X), 1), size)])
