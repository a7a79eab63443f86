"""Numerical helpers without package objects: quadrature, log-sum-exp, roots, bisection, covariances of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from jointwise._typing import BoolArray, FloatArray, IntArray

# Least variance of integers given the other columns of the block, in units of their lattice: from here on a Gaussian's
# density at the integers is their probability, and its integrals are their sums, to four digits.
LATTICE_FLOOR = 1.5


def integrate(f: Callable[[FloatArray], FloatArray], low: ArrayLike, high: ArrayLike) -> FloatArray:
    """Return the integrals of a batch of functions, by tanh-sinh quadrature (relative accuracy about 1e-12).

    Parameters
    ----------
    f : callable
        Maps points of shape (..., L) to values of that shape; column ``l`` is the ``l``-th integrand.
        It must be smooth inside its interval; put a kink or an integrable singularity at an end.
    low, high : array of shape (L,)
        Ends, which may be infinite.

    Returns
    -------
    array of shape (L,)

    Examples
    --------
    >>> integrate(lambda x: np.exp(-x), [0.0, 1.0], [np.inf, np.inf]).round(4)
    array([1.    , 0.3679])
    """
    from scipy.integrate import tanhsinh  # takes a third of a second to load

    low, high = np.broadcast_arrays(np.asarray(low, dtype=float), np.asarray(high, dtype=float))
    # SciPy puts the batch first and the points last; on coarser levels two estimates may agree by chance
    result = tanhsinh(lambda x: f(x.T).T, low, high, preserve_shape=True, rtol=1e-12, minlevel=5)
    return np.asarray(result.integral, dtype=float)


def log_dot(log_values: FloatArray, weights: FloatArray) -> FloatArray:
    """Return the logarithm of ``exp(log_values) @ weights`` without overflow or underflow.

    Parameters
    ----------
    log_values : array of shape (n, L)
        Logarithms, such as log-densities of atoms; -inf allowed, NaN and +inf not.
    weights : array of shape (L, F)
        Non-negative numbers.

    Returns
    -------
    array of shape (n, F)
        -inf only where every term is zero.

    Examples
    --------
    >>> log_dot(np.array([[-2000.0, -2001.0]]), np.array([[0.5], [0.5]])).round(3)
    array([[-2000.38]])
    """
    top = log_values.max(axis=1, keepdims=True, initial=-np.inf)
    top = np.where(np.isneginf(top), 0.0, top)
    with np.errstate(divide="ignore", under="ignore"):  # log 0 = -inf is the right answer
        out = np.log(np.exp(log_values - top) @ weights) + top
    # Terms more than 745 nats below the row's largest became zero: sum such entries around their own maximum.
    low = out < top - 680.0
    if low.any():
        # entries without any term are -inf already; with bounded atoms most are
        low &= (log_values > -np.inf).astype(float) @ (weights > 0).astype(float) > 0
        for f in np.flatnonzero(low.any(axis=0)):
            row, atom = np.flatnonzero(low[:, f]), np.flatnonzero(weights[:, f])
            terms = log_values[np.ix_(row, atom)] + np.log(weights[atom, f])
            out[row, f] = logsumexp(terms, axis=1)
    return out


def smallest_true(predicate: Callable[[FloatArray], BoolArray], low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the smallest float in [low, high] for which a monotone ``predicate`` holds, element by element.

    It must hold at ``high``. The floats are bisected in their order, as integers, so at most 64 halvings are needed
    at any magnitude.

    >>> smallest_true(lambda x: x**2 >= 2, np.array([0.0]), np.array([2.0])).round(6)
    array([1.414214])
    """
    below, above = ordered_integers(low) - 1, ordered_integers(high)
    while (below + 1 < above).any():
        middle = (below >> 1) + (above >> 1) + (below & above & 1)  # no overflow
        holds = predicate(floats_in_order(middle))
        above = np.where(holds, middle, above)
        below = np.where(holds, below, middle)
    return floats_in_order(above)


def narrowed(
    f: Callable[[IntArray, FloatArray], FloatArray], low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return brackets of a few floats around where increasing functions become positive or zero (Chandrupatla, 1997).

    A smooth function takes about ten steps. With a jump, or near zero, brackets are left wider after 40 steps. Where
    f(low) >= 0 both ends are ``low``, and where f(high) < 0 both are ``high``.

    Parameters
    ----------
    f : callable
        Maps positions (k,) of elements and points (k,) to values (k,).
    low, high : array of shape (n,)
        Finite.

    Examples
    --------
    >>> low, high = narrowed(lambda at, x: x**2 - np.array([2.0, 9.0])[at], np.zeros(2), np.array([2.0, 8.0]))
    >>> high.round(6), bool((high - low < 1e-14).all())
    (array([1.414214, 3.      ]), True)
    """
    low, high = low.copy(), high.copy()
    every = np.arange(len(low))
    at_low, at_high = f(every, low), f(every, high)
    high[at_low >= 0], low[at_high < 0] = low[at_low >= 0], high[at_high < 0]
    # one end is the latest point, the other is on the other side of the root, and the third came before
    at = np.flatnonzero(high > low)
    x1, x2, f1, f2, t = low[at], high[at], at_low[at], at_high[at], np.full(len(at), 0.5)
    for _ in range(40):
        if not at.size:
            break
        x = x1 + t * (x2 - x1)
        value = f(at, x)
        same = (value >= 0) == (f1 >= 0)
        x3, f3 = np.where(same, x1, x2), np.where(same, f1, f2)
        x2, f2 = np.where(same, x2, x1), np.where(same, f2, f1)
        x1, f1 = x, value
        low[at], high[at] = np.where(f1 >= 0, x2, x1), np.where(f1 >= 0, x1, x2)
        with np.errstate(all="ignore"):  # where the step by inverse interpolation is not used
            xi, phi, alpha = (x1 - x2) / (x3 - x2), (f1 - f2) / (f3 - f2), (x3 - x1) / (x2 - x1)
            step = f1 / (f1 - f2) * f3 / (f3 - f2) - alpha * f1 / (f3 - f1) * f2 / (f2 - f3)
            good = ((1 - phi) ** 2 < 1 - xi) & (phi**2 < xi) & np.isfinite(step)
            least = 2 * np.spacing(np.abs(x1)) / np.abs(x2 - x1)
        t = np.where(good, np.clip(step, least, 1 - least), 0.5)
        left = far_apart(low[at], high[at])
        at, x1, x2, f1, f2, t = at[left], x1[left], x2[left], f1[left], f2[left], t[left]
    return low, high


def far_apart(low: FloatArray, high: FloatArray) -> BoolArray:
    """Return where there are more than about eight floats between two."""
    apart: BoolArray = (ordered_integers(high) >> 1) - (ordered_integers(low) >> 1) > 4  # halves do not overflow
    return apart


def ordered_integers(x: FloatArray) -> IntArray:
    """Return integers in the order of the floats: neighbours stay neighbours, and both zeros become 0."""
    bits = (np.asarray(x, dtype=np.float64) + 0.0).view(np.int64)
    return np.where(bits < 0, np.int64(-(2**63)) - bits, bits)


def floats_in_order(k: IntArray) -> FloatArray:
    """Return the floats of their :func:`ordered_integers`."""
    return np.where(k < 0, np.int64(-(2**63)) - k, k).view(np.float64)


def on_lattice(covariances: FloatArray, lattice: FloatArray) -> FloatArray:
    """Return covariances whose integers, given the other columns, vary enough; see `LATTICE_FLOOR`.

    The conditional covariance of the integer columns, in units of their lattice, has its eigenvalues raised to the
    floor. Of all covariances that keep to it, that is the most likely one.

    Parameters
    ----------
    covariances : array of shape (F, d, d)
    lattice : array of shape (d,)
        Distance of neighbouring integers, zero for columns that are not integers.

    Examples
    --------
    >>> on_lattice(np.diag([4.0, 0.1])[None], np.array([0.0, 1.0]))[0]
    array([[4. , 0. ],
           [0. , 1.5]])
    """
    whole: BoolArray = lattice > 0
    if not whole.any():
        return covariances
    i, j = np.flatnonzero(whole), np.flatnonzero(~whole)
    inner = covariances[:, i[:, None], i]
    if len(j):
        cross = covariances[:, j[:, None], i]
        inner = inner - np.swapaxes(cross, 1, 2) @ np.linalg.solve(covariances[:, j[:, None], j], cross)
    units = np.outer(lattice[i], lattice[i])
    inner = (inner + np.swapaxes(inner, 1, 2)) / 2 / units
    if _all_above(inner, LATTICE_FLOOR):
        return covariances
    values, vectors = np.linalg.eigh(inner)
    lift = (vectors * np.maximum(LATTICE_FLOOR - values, 0.0)[:, None, :]) @ np.swapaxes(vectors, 1, 2)
    raised = covariances.copy()
    raised[:, i[:, None], i] += lift * units
    return raised


def _all_above(matrices: FloatArray, floor: float) -> bool:
    """Whether all eigenvalues of symmetric matrices are above a floor; a third of the time of computing them."""
    try:
        np.linalg.cholesky(matrices - floor * np.eye(matrices.shape[-1]))
    except np.linalg.LinAlgError:
        return False
    return True
