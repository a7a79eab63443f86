"""Moments, quantiles and modes of a mixture of products, from those of its atoms."""

from __future__ import annotations

import numpy as np

from jointwise._numerics import smallest_true
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.joint.product import ProductMixture

# A peak is looked for on this many points, then on as many between the neighbours of the highest, and so on: the
# last step is 1e-10 of the range, finer than the top of a smooth peak can be told, and one on 2^33 integers.
MODE_GRID = 513
MODE_ZOOMS = 4

# A level missed by no more than this share is reached: quantile(cdf(k)) must not be k + 1.
ROUNDING = 1e-14


def atom_weights(mixture: ProductMixture, n: int) -> FloatArray:
    """Weights of the atoms in the marginal of variable ``n``, B_n lam; shape (L_n,)."""
    return np.asarray(mixture.coefficients[n] @ mixture.weights)


def component_means(mixture: ProductMixture, n: int) -> FloatArray:
    """E[X_n | component], NaN where an atom in use has no mean; shape (F,)."""
    return _weighted(mixture.coefficients[n], mixture.dictionaries[n].mean())


def means(mixture: ProductMixture) -> FloatArray:
    """E[X_n] of each variable; shape (N,)."""
    return np.array([float(_weighted(atom_weights(mixture, n), d.mean())) for n, d in enumerate(mixture.dictionaries)])


def variances(mixture: ProductMixture) -> FloatArray:
    """Var[X_n] = sum_l w_l (var_l + (mean_l - mean)^2); shape (N,)."""
    centre = means(mixture)
    with np.errstate(invalid="ignore", over="ignore"):  # inf - inf: a variance without a mean stays NaN
        spread = [d.var() + (d.mean() - centre[n]) ** 2 for n, d in enumerate(mixture.dictionaries)]
    return np.array([float(_weighted(atom_weights(mixture, n), s)) for n, s in enumerate(spread)])


def covariance(mixture: ProductMixture) -> FloatArray:
    """Cov[X_j, X_k] = sum_r lam[r] (E[X_j | r] - E[X_j]) (E[X_k | r] - E[X_k]) off the diagonal; shape (N, N)."""
    used = mixture.weights > 0
    by_component = np.stack([component_means(mixture, n)[used] for n in range(mixture.n_variables)])
    with np.errstate(invalid="ignore", over="ignore"):  # as in the variances
        centred = by_component - means(mixture)[:, None]
        out = np.asarray((centred * mixture.weights[used]) @ centred.T)
    np.fill_diagonal(out, variances(mixture))
    return out


def quantiles(mixture: ProductMixture, n: int, q: FloatArray) -> FloatArray:
    """Smallest x with P(X_n <= x) >= q, for each of ``q``; shape as ``q``."""
    weights = atom_weights(mixture, n)
    used = weights > 0
    dictionary, weights = mixture.dictionaries[n].take(used), weights[used]
    level = q.ravel()
    # the quantile of a mixture lies between the smallest and the largest of its atoms' quantiles
    reached = level * (1 - ROUNDING)
    low, high = dictionary.ppf(reached).min(axis=1), dictionary.ppf(level).max(axis=1)
    found = smallest_true(lambda x: dictionary.cdf(x) @ weights >= reached, low, high)
    # the ends are the atoms' own: there rounding in the sum over atoms would decide
    return np.asarray(np.select([level == 0, level == 1], [low, high], found)).reshape(q.shape)


def mode(mixture: ProductMixture, n: int) -> float:
    """Most probable value of variable ``n``.

    Point masses come first, since every other single value has probability zero; among densities it is the
    highest peak. Of equals it is an atom's own mode, and the smallest of those.
    """
    weights = atom_weights(mixture, n)
    dictionary = mixture.dictionaries[n].take(weights > 0)
    weights = weights[weights > 0]
    spiked = dictionary.spikes.size > 0 and dictionary.is_continuous
    points = dictionary.spikes if spiked else np.unique(dictionary.mode())
    best, height = _highest(dictionary, weights, points)
    if spiked or dictionary.is_identity:
        return float(points[best])
    low, high = quantiles(mixture, n, np.array([0.001, 0.999]))
    grid = np.union1d(dictionary.corners(), np.linspace(low, high, MODE_GRID))
    for _ in range(MODE_ZOOMS):
        if not dictionary.is_continuous:
            grid = np.unique(np.round(grid))
        top, peak = _highest(dictionary, weights, grid)
        near = grid[max(top - 1, 0) : top + 2]
        found, grid = grid[top], np.linspace(near[0], near[-1], MODE_GRID)
    # on a plateau rounding must not choose the point
    return float(found if peak > height * (1 + 1e-12) else points[best])


def _highest(dictionary: Dictionary, weights: FloatArray, points: FloatArray) -> tuple[int, float]:
    """Position of the first point of highest density, and that density."""
    heights = dictionary.pdf(points) @ weights
    return int(np.argmax(heights)), float(heights.max())


def _weighted(weights: FloatArray, values: FloatArray) -> FloatArray:
    """Values of the atoms averaged by ``weights``; an undefined value counts only where its weight is positive."""
    with np.errstate(invalid="ignore"):  # 0 * inf, which the mask takes out; inf - inf is NaN
        return np.asarray(np.where(weights.T > 0, weights.T * values, 0.0).sum(axis=-1))
