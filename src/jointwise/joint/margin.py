"""Margin: the law of one variable, as a mixture of atoms."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jointwise._numerics import smallest_true
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary

# A peak is looked for on this many points, then on as many between the neighbours of the highest, and so on: the
# last step is 1e-10 of the range, finer than the top of a smooth peak can be told, and one on 2^33 integers.
MODE_GRID = 513
MODE_ZOOMS = 4

# A level missed by no more than this share is reached: quantile(cdf(k)) must not be k + 1.
ROUNDING = 1e-14


@dataclass(frozen=True, eq=False)
class Margin:
    """Law of one variable: atoms and their weights.

    Parameters
    ----------
    dictionary : Dictionary
        The atoms.
    weights : array of shape (L,)
        On the simplex.

    Examples
    --------
    >>> Margin(Dictionary.grid("gaussian", 0, 2, n=2, scale=1), np.array([0.5, 0.5])).quantiles(np.array([0.5]))
    array([1.])
    """

    dictionary: Dictionary
    weights: FloatArray

    @property
    def in_use(self) -> Margin:
        """The same law without atoms of weight zero."""
        used = self.weights > 0
        return Margin(self.dictionary.take(used), self.weights[used])

    def mean(self) -> float:
        """E[X]; NaN where an atom in use has none."""
        return float(weighted(self.weights, self.dictionary.mean()))

    def var(self) -> float:
        """Var[X] = sum_l w_l (var_l + (mean_l - mean)^2); NaN or infinite where there is none."""
        with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: a variance without a mean stays NaN
            spread = self.dictionary.var() + (self.dictionary.mean() - self.mean()) ** 2
        return float(weighted(self.weights, spread))

    def pdf(self, points: FloatArray) -> FloatArray:
        """Density at each of the points; shape (points,)."""
        return np.asarray(self.dictionary.pdf(points) @ self.weights)

    def quantiles(self, q: FloatArray) -> FloatArray:
        """Smallest x with P(X <= x) >= q, for each of ``q``; shape as ``q``."""
        used = self.in_use
        dictionary, weights = used.dictionary, used.weights
        level = q.ravel()
        # the quantile of a mixture lies between the smallest and the largest of its atoms' quantiles
        reached = level * (1 - ROUNDING)
        low, high = dictionary.ppf(reached).min(axis=1), dictionary.ppf(level).max(axis=1)
        found = smallest_true(lambda x: dictionary.cdf(x) @ weights >= reached, low, high)
        # the ends are the atoms' own: there rounding in the sum over atoms would decide
        return np.asarray(np.select([level == 0, level == 1], [low, high], found)).reshape(q.shape)

    def mode(self) -> float:
        """Most probable value.

        Point masses come first, since every other single value has probability zero; among densities it is the
        highest peak. Of equals it is an atom's own mode, and the smallest of those.
        """
        used = self.in_use
        dictionary = used.dictionary
        spiked = dictionary.spikes.size > 0 and dictionary.is_continuous
        points = dictionary.spikes if spiked else np.unique(dictionary.mode())
        best, height = used.highest(points)
        if spiked or dictionary.is_identity:
            return float(points[best])
        low, high = used.quantiles(np.array([0.001, 0.999]))
        grid = np.union1d(dictionary.corners(), np.linspace(low, high, MODE_GRID))
        for _ in range(MODE_ZOOMS):
            if not dictionary.is_continuous:
                grid = np.unique(np.round(grid))
            top, peak = used.highest(grid)
            near = grid[max(top - 1, 0) : top + 2]
            found, grid = grid[top], np.linspace(near[0], near[-1], MODE_GRID)
        # on a plateau rounding must not choose the point
        return float(found if peak > height * (1 + 1e-12) else points[best])

    def highest(self, points: FloatArray) -> tuple[int, float]:
        """Position of the first point of highest density, and that density."""
        heights = self.pdf(points)
        return int(np.argmax(heights)), float(heights.max())


def weighted(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Values of the atoms averaged by ``weights``; an undefined value counts only where its weight is positive."""
    with np.errstate(invalid="ignore"):  # 0 * inf, which the mask takes out; inf - inf is NaN
        return np.asarray(np.where(weights.T > 0, weights.T * values, 0.0).sum(axis=-1))
