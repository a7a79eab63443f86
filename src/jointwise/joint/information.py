"""Entropy and mutual information, in nats.

For one or two variables they are a sum over values (discrete) or a Gauss-Legendre quadrature (continuous), whose error
is the change with half the nodes. For more variables they are a mean over samples, with its standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.joint.expert import Expert

# Levels of the atoms' quantiles that bound the quadrature panels; the mass beyond them is 1e-10.
_TAIL = 10.0 ** np.arange(-10, -0.5, 0.5)
LEVELS = np.concatenate([[0.0], _TAIL, [0.1, 0.25, 0.5, 0.75, 0.9], 1 - _TAIL[::-1], [1.0]])
# Most entropy in those tails (1e-10 times some tens of nats), so no smaller error is claimed.
TAIL_ERROR = 1e-8
NODES_PER_PANEL = 8
# Densities of a table that are asked for at once (32 MB), and summed at once (within a cache).
TABLE_CELLS, BLOCK_CELLS = 1 << 22, 1 << 17


@dataclass(frozen=True)
class Estimate:
    """A number with its error.

    Parameters
    ----------
    value : float
        The number, in nats.
    error : float
        Estimated absolute error of a sum or quadrature, or the standard error of a Monte Carlo mean.
    method : str
        "sum", "quadrature" or "monte carlo".

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> found = hybrid(rng=0).mutual_information("x0", "x3")
    >>> found.method, 0 < float(found) < 1
    ('quadrature', True)
    """

    value: float
    error: float
    method: str

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class _Limits:
    """How fine a rule may be: a table of densities has as many cells as two rules have pairs of points."""

    corners: int  # most panel ends at jumps and bends of the atoms
    levels: int  # most panel ends at quantiles of the atoms
    lattice: int  # most integers summed one by one; a wider range is summed on about as many, with lines in between


# Tables of mixtures of products are products of matrices; those of others cost about ten times as much a cell.
PRODUCT_LIMITS, OTHER_LIMITS = _Limits(192, 128, 4096), _Limits(40, 40, 768)


@dataclass(frozen=True)
class _Rule:
    """Points and weights that integrate with respect to the base measure of one variable."""

    points: FloatArray
    weights: FloatArray
    exact: bool


def entropy(mixture: Expert, rng: np.random.Generator, n_samples: int) -> Estimate:
    """H = -E[log f(X)], with respect to the base measure."""
    if mixture.n_variables <= 2:
        return _refined(mixture, _entropy_on)
    return sample_mean(-mixture.logpdf(mixture.sample(n_samples, rng)))


def mutual_information(
    mixture: Expert, a: Sequence[int], b: Sequence[int], rng: np.random.Generator, n_samples: int
) -> Estimate:
    """I(a; b) = E[log f(X_a, X_b) / (f(X_a) f(X_b))]."""
    both = mixture.marginal([*a, *b])
    if len(a) == len(b) == 1:
        found = _refined(both, _information_on)
        return Estimate(max(found.value, 0.0), found.error, found.method)  # rounding may leave -1e-17
    X = both.sample(n_samples, rng)
    split = len(a)
    return sample_mean(
        both.logpdf(X) - mixture.marginal(a).logpdf(X[:, :split]) - mixture.marginal(b).logpdf(X[:, split:])
    )


def quadrature(mixture: Expert, functional: Callable[[Expert, FloatArray, FloatArray], float]) -> Estimate:
    """Evaluate a functional of one variable on points with weights, with an error from coarser ones.

    Parameters
    ----------
    mixture : Expert of one variable
    functional : callable
        Takes the mixture, points and their weights with respect to the base measure.
    """
    return _refined(mixture, lambda f, rules: functional(f, rules[0].points, rules[0].weights))


def sample_mean(values: FloatArray) -> Estimate:
    """Return the mean of values of a sample, with its standard error."""
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), "monte carlo")


def _refined(mixture: Expert, functional: Callable[[Expert, list[_Rule]], float]) -> Estimate:
    """Evaluate ``functional`` on fine rules; the error is its distance from the value on coarse rules."""
    variables = range(mixture.n_variables)
    fine = [_rule(mixture, n, NODES_PER_PANEL) for n in variables]
    value = functional(mixture, fine)
    if all(rule.exact for rule in fine):
        return Estimate(value, 0.0, "sum")
    coarse = [_rule(mixture, n, NODES_PER_PANEL // 2) for n in variables]
    return Estimate(value, max(abs(value - functional(mixture, coarse)), TAIL_ERROR), "quadrature")


def _entropy_on(mixture: Expert, rules: list[_Rule]) -> float:
    return sum(float(-(w * xlogy(f, f)).sum()) for f, w, _, _ in _density_blocks(mixture, rules))


def _information_on(mixture: Expert, rules: list[_Rule]) -> float:
    total = 0.0
    for f, w, fa, fb in _density_blocks(mixture, rules):
        independent = fa[:, None] * fb
        positive = (f > 0) & (independent > 0)
        total += float((w * f * np.log(np.divide(f, independent, out=np.ones_like(f), where=positive))).sum())
    return total


def _density_blocks(mixture: Expert, rules: list[_Rule]) -> Iterator[tuple[FloatArray, ...]]:
    """Yield blocks of the joint density on the product of two rules, with weights and the two marginals.

    A single variable is treated as two, the second with one point.
    """
    if len(rules) == 1:
        f = mixture.pdf_table([rules[0].points])
        yield f[:, None], rules[0].weights[:, None], f, np.ones(1)
        return
    marginals = [mixture.margin(n).in_use.pdf(rule.points) for n, rule in enumerate(rules)]
    size, step = (max(cells // len(rules[1].points), 1) for cells in (TABLE_CELLS, BLOCK_CELLS))
    for start in range(0, len(rules[0].points), size):
        table = mixture.pdf_table([rules[0].points[start : start + size], rules[1].points])
        for begin in range(0, len(table), step):
            rows = slice(start + begin, start + min(begin + step, len(table)))
            f = table[begin : begin + step]
            yield f, rules[0].weights[rows, None] * rules[1].weights, marginals[0][rows], marginals[1]


def _rule(mixture: Expert, n: int, nodes: int) -> _Rule:
    limits = PRODUCT_LIMITS if mixture.n_variables == 1 or mixture.has_independent_components else OTHER_LIMITS
    margin = mixture.margin(n).in_use
    dictionary = margin.dictionary
    if dictionary.is_identity:
        points = np.unique(dictionary.mode())
        return _Rule(points, np.ones(points.size), exact=True)
    if not dictionary.is_continuous:
        low, high = margin.quantiles(LEVELS[[1, -2]])
        return _lattice(dictionary, float(low), float(high), nodes, limits)
    points, w = _panels(_breaks(dictionary, limits), nodes)
    keep = ~np.isin(points, dictionary.spikes)
    return _Rule(
        np.concatenate([points[keep], dictionary.spikes]),
        np.concatenate([w[keep], np.ones(dictionary.spikes.size)]),
        exact=False,
    )


def _breaks(dictionary: Dictionary, limits: _Limits) -> FloatArray:
    """Ends of the panels: the corners and the quantiles of the atoms."""
    levels = _thinned(dictionary.ppf(LEVELS).ravel(), limits.levels)
    return np.unique(np.concatenate([_thinned(dictionary.corners(), limits.corners), levels]))


def _thinned(values: FloatArray, most: int) -> FloatArray:
    """Return the sorted finite values, evenly thinned to at most ``most``; the first and the last stay."""
    values = np.unique(values[np.isfinite(values)])
    keep = np.linspace(0, len(values) - 1, min(len(values), most)).round().astype(int)
    return np.asarray(values[keep])


def _panels(breaks: FloatArray, nodes: int) -> tuple[FloatArray, FloatArray]:
    """Gauss-Legendre nodes and weights on the panels between ``breaks``."""
    at, weights = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(breaks)[:, None] / 2
    return (breaks[:-1, None] + half * (at + 1)).ravel(), (half * weights).ravel()


def _lattice(dictionary: Dictionary, low: float, high: float, nodes: int, limits: _Limits) -> _Rule:
    """Return a rule for the integers of [low, high]: all of them, or some with the trapezoidal rule in between."""
    if high - low < limits.lattice:
        points = np.arange(low, high + 1)
        return _Rule(points, np.ones(points.size), exact=False)
    breaks = _breaks(dictionary, limits)
    steps = max(nodes, limits.lattice * nodes // NODES_PER_PANEL // len(breaks))
    points = np.linspace(breaks[:-1], breaks[1:], steps + 1).ravel()
    around = (dictionary.spikes[:, None] + [-1.0, 0.0, 1.0]).ravel()  # a point mass stands out from its neighbours
    points = np.unique(np.round(np.clip(np.concatenate([points, around, [low, high]]), low, high)))
    gaps = np.diff(points, prepend=points[0] - 1, append=points[-1] + 1)
    return _Rule(points, (gaps[:-1] + gaps[1:]) / 2, exact=False)
