"""Weights of 1-D mixtures, compiled by numba: many short EM runs on the bins of one column, without temporary arrays.

Every function runs in one thread, in a fixed order of additions, and releases the interpreter's lock. Those that others
call are inlined: compiled for themselves too, they would round otherwise, and the cache would decide which one runs.
"""

from __future__ import annotations

import numba
import numpy as np

from jointwise._typing import AnyArray
from jointwise.engines.compiled_parts import FAST

# An extrapolation may shrink a weight to this fraction of its plain update, and take strides of at most this length.
LEAST_SHRINK, LONGEST_STRIDE = 0.1, 1e3
# Smaller coefficients and bends count as these in the length of a stride, which stays finite.
LEAST_METRIC, LEAST_BEND = 1e-12, 1e-150
# Model masses and weights below this are raised to it: quotients and logarithms stay finite.
LEAST_MASS = 1e-290


@numba.njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def weights_of(
    masses: AnyArray,
    shares: AnyArray,
    prior: AnyArray,
    tol: float,
    least_gain: float,
    max_steps: int,
    weights: AnyArray,
) -> None:
    """Fill the weights (K, L) of K mixtures of the same atoms, from uniform ones; see `solvers.simplex_weights`.

    Parameters
    ----------
    masses : array of shape (I, L)
    shares : array of shape (K, I)
        Counts of bins, each row divided by its sum.
    prior : array of shape (K,)
        Prior count of an atom, divided like the counts.
    tol : float
        Stop where the gap, a bound on the distance to the optimum, is no larger.
    least_gain : float
        Stop after a step that gains less.
    max_steps : int
    weights : array of shape (K, L)
    """
    n_atoms = masses.shape[1]
    here, first, second, leap, beyond = np.empty((5, n_atoms))
    for k in range(len(shares)):
        here[:] = 1.0 / n_atoms
        reached, gap = _updated(masses, shares[k], prior[k], here, first)
        for _ in range(max_steps):
            if gap <= tol:
                break
            plain, plain_gap = _updated(masses, shares[k], prior[k], first, second)
            _extrapolate(here, first, second, leap)
            leaped, leap_gap = _updated(masses, shares[k], prior[k], leap, beyond)
            gain, reached = max(leaped, plain) - reached, max(leaped, plain)
            if leaped >= plain:
                here, leap = leap, here
                first, beyond = beyond, first
                gap = leap_gap
            else:
                here, first, second = first, second, here
                gap = plain_gap
            if gain < least_gain:
                break
        weights[k] = here


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def held_out_of(
    masses: AnyArray,
    atoms: AnyArray,
    ends: AnyArray,
    training: AnyArray,
    held: AnyArray,
    prior: AnyArray,
    tol: float,
    least_gain: float,
    max_steps: int,
    trace: float,
    scores: AnyArray,
) -> None:
    """Fill the mean log-likelihoods (C, K) of held-out counts under C mixtures, each fitted to K training counts.

    Parameters
    ----------
    masses : array of shape (I, L)
        Of the atoms of all mixtures.
    atoms : array of shape (sum of the mixtures' atoms,)
        Positions of the atoms of each mixture, one mixture after the other.
    ends : array of shape (C,)
        Where the atoms of each mixture end.
    training, held : arrays of shape (K, I)
        Counts of bins, each row divided by its sum.
    prior : array of shape (K,)
        Prior count of all atoms together, divided like the training counts.
    tol, least_gain, max_steps : see `weights_of`
    trace : float
        Share of every fitted mixture that is spread evenly over its atoms.
    scores : array of shape (C, K)
    """
    n_bins, start = len(masses), 0
    for mixture in range(len(ends)):
        n_atoms = ends[mixture] - start
        own, weights = np.empty((n_bins, n_atoms)), np.empty((len(training), n_atoms))
        for i in range(n_bins):
            for l in range(n_atoms):
                own[i, l] = masses[i, atoms[start + l]]
        start = ends[mixture]
        weights_of(own, training, prior / n_atoms, tol, least_gain, max_steps, weights)
        for k in range(len(held)):
            scores[mixture, k] = 0.0
            for i in range(n_bins):
                if held[k, i] > 0:
                    inside = 0.0
                    for l in range(n_atoms):
                        inside += own[i, l] * ((1 - trace) * weights[k, l] + trace / n_atoms)
                    scores[mixture, k] += held[k, i] * np.log(inside)


@numba.njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _updated(
    masses: AnyArray, shares: AnyArray, prior: float, weights: AnyArray, update: AnyArray
) -> tuple[float, float]:
    """Fill the weights after an EM update; return the log-posterior per row at the weights, and the gap."""
    n_bins, n_atoms = masses.shape
    log_posterior = 0.0
    update[:] = 0.0
    for start in range(0, n_bins - 3, 4):  # four bins at a time: sums stay in registers
        a, b, c, d = masses[start], masses[start + 1], masses[start + 2], masses[start + 3]
        in_a, in_b, in_c, in_d = 0.0, 0.0, 0.0, 0.0
        for l in range(n_atoms):
            weight = weights[l]
            in_a += a[l] * weight
            in_b += b[l] * weight
            in_c += c[l] * weight
            in_d += d[l] * weight
        in_a, in_b = max(in_a, LEAST_MASS), max(in_b, LEAST_MASS)
        in_c, in_d = max(in_c, LEAST_MASS), max(in_d, LEAST_MASS)
        of_a, of_b, of_c, of_d = shares[start], shares[start + 1], shares[start + 2], shares[start + 3]
        log_posterior += of_a * np.log(in_a) + of_b * np.log(in_b) + of_c * np.log(in_c) + of_d * np.log(in_d)
        of_a, of_b, of_c, of_d = of_a / in_a, of_b / in_b, of_c / in_c, of_d / in_d
        for l in range(n_atoms):
            update[l] += a[l] * of_a + b[l] * of_b + c[l] * of_c + d[l] * of_d
    for i in range(n_bins - n_bins % 4, n_bins):
        inside = 0.0
        for l in range(n_atoms):
            inside += masses[i, l] * weights[l]
        inside = max(inside, LEAST_MASS)
        log_posterior += shares[i] * np.log(inside)
        for l in range(n_atoms):
            update[l] += masses[i, l] * (shares[i] / inside)
    steepest, total = 0.0, 0.0
    for l in range(n_atoms):
        floored = max(weights[l], LEAST_MASS)
        steepest = max(steepest, update[l] + prior / floored)
        update[l] = weights[l] * update[l] + prior
        total += update[l]
    if prior > 0:
        for l in range(n_atoms):
            log_posterior += prior * np.log(max(weights[l], LEAST_MASS))
    for l in range(n_atoms):
        update[l] /= total
    return log_posterior, steepest - total


@numba.njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _extrapolate(start: AnyArray, first: AnyArray, second: AnyArray, leap: AnyArray) -> None:
    """Fill the squared extrapolation, normalised; see `solvers.accelerated.extrapolate`."""
    length, bend_length = 0.0, 0.0
    for l in range(len(start)):
        metric = 1.0 / max(second[l], LEAST_METRIC)
        change = first[l] - start[l]
        bend = second[l] - first[l] - change
        length += metric * change * change
        bend_length += metric * bend * bend
    stride = np.sqrt(length) / max(np.sqrt(bend_length), LEAST_BEND)
    stride = min(max(stride, 1.0), LONGEST_STRIDE)
    total = 0.0
    for l in range(len(start)):
        change = first[l] - start[l]
        bend = second[l] - first[l] - change
        leap[l] = max(start[l] + 2 * stride * change + stride * stride * bend, LEAST_SHRINK * second[l])
        total += leap[l]
    for l in range(len(start)):
        leap[l] /= total
