r"""The compiled pass over a mixture of trees whose states overlap: a cell leaves a few states possible.

Messages go from the leaves to the root of each tree, over the states that a row's cells leave:

.. math:: u_n(s) = P(x_n \mid s) \prod_c m_c(s), \qquad m_n(s_p) = \sum_s p(s \mid s_p) \, u_n(s),

with c the children of n. From the root to the leaves, an edge has the expected count
:math:`b_p(s_p) \, p(s \mid s_p) \, u_n(s) / m_n(s_p)`, with b_p the belief in the parent's states; its sum over
:math:`s_p` is b_n. An edge takes time with the square of possible states.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.compiled_parts import FAST, count_parts, in_threads, locked, to_posteriors
from jointwise.engines.trees.base import EdgeSums, Forest, TreeComponents
from jointwise.engines.trees.emissions import Emissions, PossibleStates
from jointwise.engines.trees.reference import ReferenceTreeEngine

# Messages below this count as this, so that an impossible row has a finite log-density; and what is small enough to be
# scaled, or for its logarithm to be taken.
LEAST, SMALL = 1e-280, 1e-20
# Smaller posteriors count as zero: they change a count by less than EM leaves open.
LEAST_SHARE = 1e-9


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

    counts: AnyArray  # (N,): possible states of each cell
    states: AnyArray  # (N, S): which they are
    values: AnyArray  # (N, S): probability of the cell's code given them
    inside: AnyArray  # (F, N, S): u_n
    up: AnyArray  # (F, N, S): m_n, for the possible states of the parent
    outside: AnyArray  # (N, S): b_n / u_n, times the row's posterior


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
        np.empty(N, dtype=np.int64), np.empty((N, S), dtype=np.uint64), np.empty((N, S)), np.empty((F, N, S)),
        np.empty((F, N, S)), np.empty((N, S)),
    )  # fmt: skip
    posteriors = np.empty(F)
    likelihood = 0.0
    for i in range(begin, end):
        for n in range(N):
            code = possible.firsts[n] + np.int64(codes[i, n])
            first = possible.starts[code]
            scratch.counts[n] = possible.starts[code + 1] - first
            for a in range(scratch.counts[n]):
                scratch.states[n, a] = possible.states[first + a]
                scratch.values[n, a] = possible.values[first + a]
        for r in range(F):
            posteriors[r] = trees.log_weights[r] + _upward(trees, r, scratch)
        likelihood += weights[i] * to_posteriors(posteriors, weights[i])
        for r in range(F):
            if posteriors[r] > LEAST_SHARE * weights[i]:
                totals[r] += posteriors[r]
                _downward(trees, r, posteriors[r], scratch, edges)
    return likelihood


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _upward(trees: _Trees, r: int, scratch: _Scratch) -> float:
    """Write u_n of each cell of a row, up to a factor, and the messages; return the log-density of the row."""
    counts, states, inside, up = scratch.counts, scratch.states, scratch.inside[r], scratch.up[r]
    N = len(counts)
    for n in range(N):
        for a in range(counts[n]):
            inside[n, a] = scratch.values[n, a]
    log_density, factor = 0.0, 1.0
    for place in range(N - 1, -1, -1):
        n = trees.order[r, place]
        p, start, S = trees.parents[r, n], np.uint64(trees.starts[r, n]), np.uint64(trees.n_states[n])
        if p < 0:
            up[n, 0] = max(_message(trees.tables, start, states[n], inside[n], counts[n]), LEAST)
            factor *= up[n, 0]
        else:
            top = 0.0
            for a in range(counts[p]):
                row = start + states[p, a] * S
                up[n, a] = max(_message(trees.tables, row, states[n], inside[n], counts[n]), LEAST)
                inside[p, a] *= up[n, a]
                top = max(top, inside[p, a])
            if top < SMALL:  # many children, or cells that agree with no state
                top = max(top, LEAST)
                inside[p, : counts[p]] /= top
                factor *= top
        if factor < SMALL:  # logarithms are slow: take that of many factors at once
            log_density += np.log(factor)
            factor = 1.0
    return log_density + np.log(factor)  # type: ignore[no-any-return]


@numba.njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def _message(tables: AnyArray, row: np.uint64, states: AnyArray, inside: AnyArray, count: int) -> float:
    """Return m_n for the state of the parent whose row of the table begins at `row`."""
    total = 0.0
    for b in range(count):
        total += tables[row + states[b]] * inside[b]
    return total


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def _downward(trees: _Trees, r: int, weight: float, scratch: _Scratch, edges: AnyArray) -> None:
    """Add a row's posterior to the edges of a tree, after `_upward`."""
    counts, states, outside = scratch.counts, scratch.states, scratch.outside
    inside, up = scratch.inside[r], scratch.up[r]
    for place in range(len(counts)):
        n = trees.order[r, place]
        p, start, S = trees.parents[r, n], np.uint64(trees.starts[r, n]), np.uint64(trees.n_states[n])
        own, below, said = states[n], outside[n], inside[n]
        for b in range(counts[n]):
            below[b] = 0.0
        for a in range(1 if p < 0 else counts[p]):
            row = start if p < 0 else start + states[p, a] * S
            share = weight / up[n, a] if p < 0 else outside[p, a] * inside[p, a] / up[n, a]
            for b in range(counts[n]):
                entry = row + own[b]
                joint = share * trees.tables[entry]
                below[b] += joint
                edges[entry] += joint * said[b]
