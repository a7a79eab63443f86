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
from jointwise.joint.product import ProductMixture

# Levels of the atoms' quantiles that bound the quadrature panels; the mass beyond them is 1e-10.
_TAIL = 10.0 ** np.arange(-10, -0.5, 0.5)
LEVELS = np.concatenate([[0.0], _TAIL, [0.1, 0.25, 0.5, 0.75, 0.9], 1 - _TAIL[::-1], [1.0]])
# Most entropy in those tails (1e-10 times some tens of nats), so no smaller error is claimed.
TAIL_ERROR = 1e-8
# Most panel ends at jumps and bends of the atoms, and at their quantiles.
MAX_CORNERS, MAX_LEVELS = 192, 128
NODES_PER_PANEL = 8
# Most integers summed one by one; a wider range is summed on about as many, with straight lines in between.
MAX_LATTICE = 4096


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
    """

    value: float
    error: float
    method: str

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class _Rule:
    """Points and weights that integrate with respect to the base measure of one variable."""

    points: FloatArray
    weights: FloatArray
    exact: bool


def entropy(mixture: ProductMixture, rng: np.random.Generator, n_samples: int) -> Estimate:
    """H = -E[log f(X)], with respect to the base measure."""
    if mixture.n_variables <= 2:
        return _refined(mixture, _entropy_on)
    return _mean(-mixture.logpdf(mixture.sample(n_samples, rng)))


def mutual_information(
    mixture: ProductMixture, a: Sequence[int], b: Sequence[int], rng: np.random.Generator, n_samples: int
) -> Estimate:
    """I(a; b) = E[log f(X_a, X_b) / (f(X_a) f(X_b))]."""
    both = mixture.marginal([*a, *b])
    if len(a) == len(b) == 1:
        found = _refined(both, _information_on)
        return Estimate(max(found.value, 0.0), found.error, found.method)  # rounding may leave -1e-17
    X = both.sample(n_samples, rng)
    split = len(a)
    return _mean(both.logpdf(X) - mixture.marginal(a).logpdf(X[:, :split]) - mixture.marginal(b).logpdf(X[:, split:]))


def _mean(values: FloatArray) -> Estimate:
    return Estimate(float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))), "monte carlo")


def _refined(mixture: ProductMixture, functional: Callable[[ProductMixture, list[_Rule]], float]) -> Estimate:
    """Evaluate ``functional`` on fine rules; the error is its distance from the value on coarse rules."""
    variables = range(mixture.n_variables)
    fine = [_rule(mixture, n, NODES_PER_PANEL) for n in variables]
    value = functional(mixture, fine)
    if all(rule.exact for rule in fine):
        return Estimate(value, 0.0, "sum")
    coarse = [_rule(mixture, n, NODES_PER_PANEL // 2) for n in variables]
    return Estimate(value, max(abs(value - functional(mixture, coarse)), TAIL_ERROR), "quadrature")


def _entropy_on(mixture: ProductMixture, rules: list[_Rule]) -> float:
    return sum(float(-(w * xlogy(f, f)).sum()) for f, w, _, _ in _density_blocks(mixture, rules))


def _information_on(mixture: ProductMixture, rules: list[_Rule]) -> float:
    total = 0.0
    for f, w, fa, fb in _density_blocks(mixture, rules):
        independent = fa[:, None] * fb
        positive = (f > 0) & (independent > 0)
        total += float((w * f * np.log(np.divide(f, independent, out=np.ones_like(f), where=positive))).sum())
    return total


def _density_blocks(mixture: ProductMixture, rules: list[_Rule]) -> Iterator[tuple[FloatArray, ...]]:
    """Yield blocks of the joint density on the product of two rules, with weights and the two marginals.

    A single variable is treated as two, the second with one point.
    """
    factors = [np.exp(mixture.log_conditionals(n, rule.points)) for n, rule in enumerate(rules)]
    marginals = [f @ mixture.weights for f in factors]
    if len(rules) == 1:
        factors, marginals = [factors[0], np.ones((1, mixture.n_components))], [marginals[0], np.ones(1)]
        rules = [rules[0], _Rule(np.zeros(1), np.ones(1), exact=True)]
    for start in range(0, len(rules[0].points), 512):
        rows = slice(start, start + 512)
        f = (factors[0][rows] * mixture.weights) @ factors[1].T
        yield f, rules[0].weights[rows, None] * rules[1].weights, marginals[0][rows], marginals[1]


def _rule(mixture: ProductMixture, n: int, nodes: int) -> _Rule:
    margin = mixture.margin(n).in_use
    dictionary = margin.dictionary
    if dictionary.is_identity:
        points = np.unique(dictionary.mode())
        return _Rule(points, np.ones(points.size), exact=True)
    if not dictionary.is_continuous:
        low, high = margin.quantiles(LEVELS[[1, -2]])
        return _lattice(dictionary, float(low), float(high), nodes)
    points, w = _panels(_breaks(dictionary), nodes)
    keep = ~np.isin(points, dictionary.spikes)
    return _Rule(
        np.concatenate([points[keep], dictionary.spikes]),
        np.concatenate([w[keep], np.ones(dictionary.spikes.size)]),
        exact=False,
    )


def _breaks(dictionary: Dictionary) -> FloatArray:
    """Ends of the panels: the corners and the quantiles of the atoms."""
    levels = dictionary.ppf(LEVELS).ravel()
    return np.unique(np.concatenate([_thinned(dictionary.corners(), MAX_CORNERS), _thinned(levels, MAX_LEVELS)]))


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


def _lattice(dictionary: Dictionary, low: float, high: float, nodes: int) -> _Rule:
    """Return a rule for the integers of [low, high]: all of them, or some with the trapezoidal rule in between."""
    if high - low < MAX_LATTICE:
        points = np.arange(low, high + 1)
        return _Rule(points, np.ones(points.size), exact=False)
    breaks = _breaks(dictionary)
    steps = max(nodes, MAX_LATTICE * nodes // NODES_PER_PANEL // len(breaks))
    points = np.linspace(breaks[:-1], breaks[1:], steps + 1).ravel()
    around = (dictionary.spikes[:, None] + [-1.0, 0.0, 1.0]).ravel()  # a point mass stands out from its neighbours
    points = np.unique(np.round(np.clip(np.concatenate([points, around, [low, high]]), low, high)))
    gaps = np.diff(points, prepend=points[0] - 1, append=points[-1] + 1)
    return _Rule(points, (gaps[:-1] + gaps[1:]) / 2, exact=False)
