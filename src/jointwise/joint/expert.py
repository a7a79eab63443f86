"""What a density asks of a mixture: the contract of an expert."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
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

    weights: FloatArray

    @property
    @abstractmethod
    def n_variables(self) -> int:
        """Number of variables N."""

    @property
    def n_components(self) -> int:
        """Number of components F."""
        return len(self.weights)

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

    # ---- one variable ------------------------------------------------------------------------------------

    @abstractmethod
    def factor(self, n: int) -> tuple[Dictionary, FloatArray]:
        """Law of variable ``n`` given each component: atoms, and their weights of shape (atoms, F)."""

    def margin(self, n: int) -> Margin:
        """Law of variable ``n`` alone: its cdf, quantiles, mode and moments."""
        dictionary, coefficients = self.factor(n)
        return Margin(dictionary, np.asarray(coefficients @ self.weights))

    def component_means(self, n: int) -> FloatArray:
        """E[X_n | component], NaN where an atom in use has no mean; shape (F,)."""
        dictionary, coefficients = self.factor(n)
        return weighted(coefficients, dictionary.mean())

    @abstractmethod
    def conditionals(self, n: int, X: FloatArray) -> Conditionals:
        """Law of variable ``n`` in each encoded row, given the row's other cells; its own cell is ignored."""

    # ---- events ------------------------------------------------------------------------------------------

    @abstractmethod
    def log_probability(self, event: Mapping[int, Region]) -> float:
        """Log-probability of a box, given as a region for some of the variables."""

    @abstractmethod
    def crosstab(self, regions: Mapping[int, Sequence[Region]]) -> FloatArray:
        """Probability of each combination of regions, one dimension per variable of ``regions``.

        An interval does not count the points that are regions of their own.
        """

    @abstractmethod
    def marginal(self, keep: Sequence[int]) -> Expert:
        """Expert of the variables at the positions ``keep``."""

    @abstractmethod
    def condition(self, event: Mapping[int, Region]) -> Expert:
        """Expert given ``event``; a point takes its variable out, an interval or a set truncates it."""

    # ---- moments and samples -----------------------------------------------------------------------------

    @abstractmethod
    def covariance(self) -> FloatArray:
        """Covariance matrix; shape (N, N)."""

    @abstractmethod
    def sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        """``n`` independent encoded rows; shape (n, N)."""

    @abstractmethod
    def complete(self, X: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Encoded rows with the missing cells of each drawn together, given its observed cells; shape (n, N)."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values and arrays, which a file can hold, with the ``kind`` of expert."""


def in_blocks(function: Callable[[FloatArray], FloatArray], X: FloatArray) -> FloatArray:
    """Values of ``function`` for the rows of ``X``, some thousand rows at a time."""
    return np.concatenate([function(X[start : start + BLOCK]) for start in range(0, max(len(X), 1), BLOCK)])
