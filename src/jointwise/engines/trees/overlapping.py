r"""The compiled pass over a mixture of trees whose states overlap: a cell leaves a few states possible.

Messages go from the leaves to the root of each tree, over the states that a row's cells leave:

.. math:: u_n(s) = P(x_n \mid s) \prod_c m_c(s), \qquad m_n(s_p) = \sum_s p(s \mid s_p) \, u_n(s),

with c the children of n. From the root to the leaves, an edge has the expected count
:math:`b_p(s_p) \, p(s \mid s_p) \, u_n(s) / m_n(s_p)`, with b_p the belief in the parent's states; its sum over
:math:`s_p` is b_n. Each u_n is scaled to a largest entry of one. An edge takes time with the square of possible states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.compiled_parts import count_parts, in_threads, locked, to_posteriors
from jointwise.engines.trees.base import EdgeSums, Forest, TreeComponents
from jointwise.engines.trees.emissions import Emissions, PossibleStates
from jointwise.engines.trees.reference import ReferenceTreeEngine

# Messages below this count as this, so that an impossible row has a finite log-density; and what counts as small.
LEAST, SMALL = 1e-280, 1e-20


class OverlappingTreeEngine(ReferenceTreeEngine):
    """Expected counts of edges by compiled loops; see the module. Pairs, which fits do not count, are summed plainly.

    Parameters
    ----------
    codes, n_bins, weights, emissions
        As those of `ReferenceTreeEngine`.
    n_threads : int, optional
        Largest number of threads of a pass; all of numba's by default.
    """

    def __init__(
        self,
        codes: CodeArray,
        n_bins: Sequence[int],
        weights: FloatArray | None,
        emissions: Emissions,
        n_threads: int | None = None,
    ) -> None:
        super().__init__(codes, n_bins, weights, emissions)
        self._n_threads = n_threads or numba.get_num_threads()
        self._rows = locked(codes), locked(self._weights)
        self._possible = emissions.possible

    def edge_sums(self, components: TreeComponents) -> EdgeSums:
        """Return the expected counts of all edges; see `TreeEngine`."""
        components.forest.check(self._n_bins)
        trees, n = _trees(components), len(self._codes)
        n_parts = count_parts(n, trees.tables.nbytes)
        edges, totals = np.zeros((n_parts, len(trees.tables))), np.zeros((n_parts, len(trees.parents)))

        def part(p: int) -> float:
            rows = p * n // n_parts, (p + 1) * n // n_parts
            likelihood: float = _edge_part(*self._rows, self._possible, trees, totals[p], edges[p], *rows)
            return likelihood

        likelihoods = in_threads(part, n_parts, self._n_threads)
        return EdgeSums(totals.sum(axis=0), edges.sum(axis=0), float(np.sum(likelihoods)))


class _Trees(NamedTuple):
    """The components as the compiled loops see them."""

    log_weights: AnyArray  # (F,)
    parents: AnyArray  # (F, N)
    order: AnyArray  # (F, N): parents before children
    starts: AnyArray  # (F, N): where each table begins
    tables: AnyArray  # probabilities, end to end
    n_states: AnyArray  # (N,)


class _Scratch(NamedTuple):
    """What messages say of one row: places for the possible states of each of its cells in each tree."""

    firsts: AnyArray  # (N,): where the possible states of each cell begin
    counts: AnyArray  # (N,): how many they are
    inside: AnyArray  # (F, N, S): u_n
    up: AnyArray  # (F, N, S): m_n, for the possible states of the parent
    outside: AnyArray  # (N, S): b_n / u_n


def _trees(components: TreeComponents) -> _Trees:
    forest: Forest = components.forest
    return _Trees(
        np.array(components.log_weights),
        np.array(forest.parents),
        np.array(forest.order),
        np.array(forest.starts[:-1]).reshape(forest.parents.shape),
        np.exp(components.logs),
        np.array(forest.n_bins),
    )


# ---- compiled loops, all in this module: numba's cache does not see when a function of another one changes -----------


@numba.njit(cache=True, nogil=True)
def _edge_part(
    codes: AnyArray, weights: AnyArray, possible: PossibleStates, trees: _Trees, totals: AnyArray, edges: AnyArray,
    begin: int, end: int,
) -> float:  # fmt: skip
    """Take the rows from `begin` to `end`; add to totals (F,) and edges, and return the log-likelihood."""
    F, N = trees.parents.shape
    S = trees.n_states.max()
    scratch = _Scratch(
        np.empty(N, dtype=np.int64), np.empty(N, dtype=np.int64), np.empty((F, N, S)), np.empty((F, N, S)),
        np.empty((N, S)),
    )  # fmt: skip
    posteriors = np.empty(F)
    likelihood = 0.0
    for i in range(begin, end):
        for n in range(N):
            code = possible.firsts[n] + np.int64(codes[i, n])
            scratch.firsts[n] = possible.starts[code]
            scratch.counts[n] = possible.starts[code + 1] - possible.starts[code]
        for r in range(F):
            posteriors[r] = trees.log_weights[r] + _upward(possible, trees, r, scratch)
        likelihood += weights[i] * to_posteriors(posteriors, weights[i])
        for r in range(F):
            if posteriors[r] > 0.0:
                totals[r] += posteriors[r]
                _downward(possible, trees, r, posteriors[r], scratch, edges)
    return likelihood


@numba.njit(cache=True, nogil=True)
def _upward(possible: PossibleStates, trees: _Trees, r: int, scratch: _Scratch) -> float:
    """Write u_n of each cell of a row, up to a factor, and the messages; return the log-density of the row."""
    firsts, counts, inside, up = scratch.firsts, scratch.counts, scratch.inside[r], scratch.up[r]
    N = len(firsts)
    for n in range(N):
        for a in range(counts[n]):
            inside[n, a] = possible.values[firsts[n] + a]
    log_density, factor = 0.0, 1.0
    for place in range(N - 1, -1, -1):
        n = trees.order[r, place]
        p, start, S = trees.parents[r, n], trees.starts[r, n], trees.n_states[n]
        if p < 0:
            up[n, 0] = max(_message(possible, trees, start, n, scratch, inside), LEAST)
            factor *= up[n, 0]
        else:
            for a in range(counts[p]):
                row = start + possible.states[firsts[p] + a] * S
                up[n, a] = max(_message(possible, trees, row, n, scratch, inside), LEAST)
            factor *= _times(inside[p], up[n], counts[p])
        if factor < SMALL:  # logarithms are slow: take that of many factors at once
            log_density += np.log(factor)
            factor = 1.0
    log_density += np.log(factor)
    return log_density


@numba.njit(cache=True, nogil=True, inline="always")
def _message(possible: PossibleStates, trees: _Trees, row: int, n: int, scratch: _Scratch, inside: AnyArray) -> float:
    """Return m_n for the state of the parent whose row of the table begins at `row`."""
    first, total = scratch.firsts[n], 0.0
    for b in range(scratch.counts[n]):
        total += trees.tables[row + possible.states[first + b]] * inside[n, b]
    return total


@numba.njit(cache=True, nogil=True)
def _times(own: AnyArray, message: AnyArray, length: int) -> float:
    """Multiply by a message and scale to a largest entry of one; return the scale."""
    top = 0.0
    for a in range(length):
        own[a] *= message[a]
        top = max(top, own[a])
    top = max(top, LEAST)
    for a in range(length):
        own[a] /= top
    return top


@numba.njit(cache=True, nogil=True)
def _downward(
    possible: PossibleStates, trees: _Trees, r: int, weight: float, scratch: _Scratch, edges: AnyArray
) -> None:
    """Add a row's posterior to the edges of a tree, after `_upward`."""
    firsts, counts, inside, up, outside = (
        scratch.firsts, scratch.counts, scratch.inside[r], scratch.up[r], scratch.outside,
    )  # fmt: skip
    for place in range(len(firsts)):
        n = trees.order[r, place]
        p, start, S = trees.parents[r, n], trees.starts[r, n], trees.n_states[n]
        for b in range(counts[n]):
            outside[n, b] = 0.0
        for a in range(1 if p < 0 else counts[p]):
            row = start if p < 0 else start + possible.states[firsts[p] + a] * S
            belief = 1.0 if p < 0 else outside[p, a] * inside[p, a]
            share = belief / up[n, a]
            for b in range(counts[n]):
                entry = row + possible.states[firsts[n] + b]
                joint = share * trees.tables[entry]
                outside[n, b] += joint
                edges[entry] += weight * joint * inside[n, b]
