"""Choices made from the data: the dictionary of each variable, by cross-validated likelihood of its 1-D counts.

The paper designs dictionaries by looking at histograms. Here candidates are written down (families, numbers of
locations, scales tied to their distance), each is fitted to the counts of a variable's bins, and the smallest one
that predicts held-out counts as well as the best, up to noise, is taken. It runs on bins, so its cost does not grow
with rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np

from jointwise._checks import unknown_name
from jointwise._typing import FloatArray
from jointwise.axes import Axis, BinnedAxis
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.families import Exponential, Gamma, LogNormal, StudentT
from jointwise.marginals.pairwise import PairwiseMarginals
from jointwise.solvers import mean_log_likelihood, simplex_weights
from jointwise.variables import Kind, Variable

N_FOLDS = 5
# Fits that are only compared stop early: their likelihoods are then off by less than folds differ by chance.
SELECTION_TOL, SELECTION_STEPS = 1e-3, 40
# Numbers of locations on [q0.5%, q99.5%], with scales in units of their distance: at 1 and above a mixture of
# neighbours has no dents, and dents are what noise in the counts would be fitted with.
GRIDS = ((9, 1.0), (17, 1.0), (17, 2.0), (33, 1.0), (33, 2.0), (49, 2.0))
# Integers with at most this many values between their extremes have one atom per value.
MAX_IDENTITY = 32
# A lattice atom narrower than this is a point mass to three digits.
LEAST_LATTICE_SCALE = 0.3
# A density is taken to jump where neighbouring bins differ by this factor, and by this many standard errors.
JUMP_FACTOR, JUMP_ERRORS = 3.0, 4.0
MAX_JUMPS = 4


def choose_dictionaries(
    marginals: PairwiseMarginals, given: Mapping[str, Dictionary], rng: np.random.Generator
) -> tuple[Dictionary, ...]:
    """One dictionary per variable: the one given by name, else the best of the candidates.

    Parameters
    ----------
    marginals : PairwiseMarginals
    given : mapping of names to Dictionary
        A density given for an integer variable is put on the lattice.
    rng : numpy.random.Generator
        Deals the counts to folds.
    """
    schema = marginals.schema
    for name in given:
        if name not in schema.names:
            raise unknown_name("variable in dictionaries:", name, schema.names)
    return tuple(
        _as_kind(variable, given[variable.name])
        if variable.name in given
        else choose_dictionary(variable, axis, marginals.marginal(n), rng)
        for n, (variable, axis) in enumerate(zip(schema, marginals.axes, strict=True))
    )


def choose_dictionary(variable: Variable, axis: Axis, counts: FloatArray, rng: np.random.Generator) -> Dictionary:
    """Smallest candidate whose held-out likelihood is within one standard error of the best.

    Parameters
    ----------
    variable : Variable
    axis : Axis
    counts : array of shape (n_bins,)
    rng : numpy.random.Generator
        Deals the counts to folds.
    """
    candidates = list(candidate_dictionaries(variable, axis, counts))
    if len(candidates) == 1:
        return candidates[0]
    folds = split_counts(counts, N_FOLDS, rng)
    scores = np.stack([held_out(candidate.masses(axis), folds) for candidate in candidates])
    return candidates[smallest_good(scores, [c.n_atoms for c in candidates])]


def smallest_good(scores: FloatArray, sizes: Sequence[int]) -> int:
    """Position of the smallest candidate within one standard error of the best.

    The error is that of the difference to the best over folds, which is far smaller than that of a score itself.

    Parameters
    ----------
    scores : array of shape (candidates, folds)
    sizes : sequence of int

    Examples
    --------
    >>> smallest_good(np.array([[1.0, 1.2, 0.9], [1.1, 1.1, 1.0], [0.1, 0.1, 0.1]]), [7, 13, 4])
    0
    """
    total = np.asarray(scores.mean(axis=1))
    best = int(np.argmax(total))
    usable = np.asarray(np.isfinite(scores).all(axis=1))
    behind = np.where(usable[:, None], scores, 0.0) - scores[best]
    error = behind.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
    good = [i for i in range(len(total)) if usable[i] and total[i] >= total[best] - error[i]] or [best]
    return min(good, key=lambda i: (sizes[i], -total[i]))


def candidate_dictionaries(variable: Variable, axis: Axis, counts: FloatArray) -> Iterator[Dictionary]:
    """All dictionaries considered for a variable, never none."""
    if variable.categories is not None:
        yield Dictionary.categories(len(variable.categories))
        return
    assert isinstance(axis, BinnedAxis)  # only categories have no order
    low, high = variable.observed
    inside = counts[: axis.n_intervals]
    if variable.kind is Kind.INTEGER and high - low < MAX_IDENTITY:
        yield Dictionary.points(np.arange(low, high + 1))
    elif not inside.any():
        yield Dictionary.points(axis.spikes)
    else:
        for candidate in _densities(_Margin(variable, axis, inside)):
            of_kind = candidate.on_lattice() if variable.kind is Kind.INTEGER else candidate
            yield of_kind + Dictionary.points(axis.spikes) if len(axis.spikes) else of_kind


class _Margin:
    """Counts of the interval bins of one variable, and what candidates are made from."""

    def __init__(self, variable: Variable, axis: BinnedAxis, counts: FloatArray) -> None:
        self.counts = counts
        self.edges = np.concatenate([variable.observed[:1], axis.edges, variable.observed[1:]])
        self.edges = np.maximum.accumulate(self.edges)
        self.low, self.middle, self.high = self.quantile([0.005, 0.5, 0.995])
        # a variable with nearly all rows at one value still needs atoms of some width
        floor = LEAST_LATTICE_SCALE if variable.kind is Kind.INTEGER else 1e-6 * max(abs(self.middle), 1e-300)
        self.least_scale = max(floor, 1e-3 * float(self.edges[-1] - self.edges[0]) / len(counts))

    def quantile(self, q: Sequence[float]) -> FloatArray:
        """Quantiles from the counts, linear inside a bin."""
        cumulative = np.concatenate([[0.0], np.cumsum(self.counts)])
        return np.asarray(np.interp(np.asarray(q) * cumulative[-1], cumulative, self.edges))

    def jumps(self) -> FloatArray:
        """Edges, the ends included, where the density of neighbouring bins differs far beyond noise."""
        widths = np.diff(self.edges)
        filled = widths > 0
        counts, widths = self.counts[filled], widths[filled]
        edges = np.concatenate([self.edges[:1], self.edges[1:][filled]])
        padded = np.concatenate([[0.0], counts / widths, [0.0]])
        # twice the count is one standard error squared of the difference, in units of rows
        noise = np.sqrt(np.concatenate([[0.0], counts / widths**2, [0.0]]) + 1e-300)
        step = np.abs(np.diff(padded))
        clear = step > JUMP_ERRORS * np.hypot(noise[1:], noise[:-1])
        large = np.maximum(padded[1:], padded[:-1]) > JUMP_FACTOR * np.minimum(padded[1:], padded[:-1])
        found = np.flatnonzero(clear & large)
        return np.sort(edges[found[np.argsort(-step[found])][:MAX_JUMPS]])


def _densities(margin: _Margin) -> Iterator[Dictionary]:
    """Candidates for a density: grids of Gaussians or Laplacians, plus what the shape of the counts suggests."""
    low, high = margin.low, margin.high
    spread = max(high - low, margin.least_scale)
    # one wide heavy-tailed atom, so that no row is out of reach and the grid need not stretch into the tails
    wide = Dictionary((StudentT(df=np.array([3.0]), loc=margin.middle, scale=np.array([spread / 6])),))
    extras = [wide]
    if margin.edges[0] > 0:
        extras.append(wide + _positive(margin))
    jumps = margin.jumps()
    if len(jumps) >= 2:
        extras.append(wide + Dictionary.uniforms(jumps))
    for family, (n, ratio), extra in product(("gaussian", "laplace"), GRIDS, extras):
        scale = max(ratio * spread / (n - 1), margin.least_scale)
        yield Dictionary.grid(family, low, high, n=n, scale=scale) + extra


def _positive(margin: _Margin) -> Dictionary:
    """Exponential, gamma and log-normal atoms around the quantiles of a positive variable."""
    median = margin.quantile([0.1, 0.25, 0.5, 0.75, 0.9])
    lower, upper = margin.quantile([0.1, 0.9])
    log_std = max(np.log(upper / lower) / 2.56, 1e-3)  # 2.56 standard deviations lie between these quantiles
    return Dictionary(
        (
            Exponential(origin=np.zeros(1), scale=median, direction=np.ones(1)),
            Gamma(shape=np.array([2.0]), scale=median / 2),
            LogNormal(log_mean=np.log(median), log_std=np.array([log_std / 2])),
            LogNormal(log_mean=np.log(median[2:3]), log_std=np.array([log_std])),
        )
    )


def split_counts(counts: FloatArray, n_folds: int, rng: np.random.Generator) -> FloatArray:
    """Deal the rows of each bin to folds at random; shape (bins, folds).

    It depends on the counts alone, so rows in any order, or as weights, are dealt alike. What a weight has beyond a
    whole number goes to one fold.

    >>> split_counts(np.array([4.0, 6.5]), 2, np.random.default_rng(0)).sum(axis=1)
    array([4. , 6.5])
    """
    whole = np.floor(counts)
    folds = rng.multinomial(whole.astype(np.int64), np.full(n_folds, 1 / n_folds)).astype(np.float64)
    folds[np.arange(len(counts)), rng.integers(n_folds, size=len(counts))] += counts - whole
    return folds


def held_out(masses: FloatArray, folds: FloatArray) -> FloatArray:
    """Mean log-likelihood of each fold under the weights fitted to the others; shape (folds,)."""
    training = folds.sum(axis=1, keepdims=True) - folds
    weights = simplex_weights(masses, training, tol=SELECTION_TOL, max_steps=SELECTION_STEPS)
    return mean_log_likelihood(masses, folds, weights)


def _as_kind(variable: Variable, dictionary: Dictionary) -> Dictionary:
    if not isinstance(dictionary, Dictionary):
        raise InputError(f"dictionaries[{variable.name!r}] must be a Dictionary, got {type(dictionary).__name__}.")
    return dictionary.on_lattice() if variable.kind is Kind.INTEGER else dictionary
