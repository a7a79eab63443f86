"""The pass over a Gaussian block in plain numpy, one pattern of observed cells after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from jointwise._typing import AnyArray, BoolArray, CodeArray, FloatArray, IntArray
from jointwise.engines.blocks.base import (
    LEAST_LOG,
    LOG_TAU,
    BlockComponents,
    BlockLayout,
    BlockSums,
    ScoringBlockEngine,
)


class ReferenceBlockEngine(ScoringBlockEngine):
    """Sums of a pass by numpy; see `blocks.base`.

    Parameters
    ----------
    codes : array of shape (n, N), uint8 or uint16
        Column n holds 0 to n_bins[n] - 1, or n_bins[n] where a value is missing.
    layout : BlockLayout
    weights : array of shape (n,), optional
        Weights of the rows; one each by default.

    Examples
    --------
    >>> layout = BlockLayout([2], columns=[0], values=[np.array([-1.0, 1.0])], others=[])
    >>> engine = ReferenceBlockEngine(np.array([[0], [1], [2]], dtype=np.uint8), layout)
    >>> ones = np.ones((1, 1, 1))
    >>> sums = engine.sums(BlockComponents(np.zeros(1), np.zeros((1, 1)), ones, (), (np.zeros((1, 1)),)))
    >>> sums.totals, sums.seconds[0], sums.spikes
    (array([3.]), array([[3.]]), (array([[2.]]),))
    """

    def __init__(self, codes: CodeArray, layout: BlockLayout, weights: FloatArray | None = None) -> None:
        self._layout = layout
        self._weights = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
        self._values = np.full((len(codes), layout.d), np.nan)
        # one code for each cell: of block columns 0 is "at no spike" and 1 + s a spike; the last is "missing"
        self._states = np.empty((len(codes), layout.d), dtype=np.intp)
        for j, (column, w) in enumerate(zip(layout.columns, layout.values, strict=True)):
            own = codes[:, column].astype(np.intp)
            inside = own < len(w)
            self._values[inside, j] = w[own[inside]]
            self._states[:, j] = np.where(inside, 0, own - len(w) + 1)
        self._others = codes[:, list(layout.others)].astype(np.intp)

    def sums(self, components: BlockComponents) -> BlockSums:
        """One pass over the rows; see `BlockEngine`."""
        components.check(self._layout)
        seen = self._seen(components)
        logs = self._log_shares(components, seen)
        log_density = logsumexp(logs, axis=1, keepdims=True)
        posteriors = np.exp(logs - log_density) * self._weights[:, None]
        F, d = components.means.shape
        firsts, seconds = np.zeros((F, d)), np.zeros((F, d, d))
        for pattern, rows in seen:
            pattern.add_moments(self._values[rows], posteriors[rows], firsts, seconds)
        return BlockSums(
            posteriors.sum(axis=0),
            firsts,
            seconds,
            tuple(_counts(c, posteriors, len(t)) for c, t in zip(self._others.T, components.tables, strict=True)),
            tuple(_counts(s, posteriors, len(t)) for s, t in zip(self._states.T, components.spikes, strict=True)),
            float(self._weights @ log_density[:, 0]),
        )

    def log_densities(self, components: BlockComponents, scales: Sequence[float] = (1.0,)) -> FloatArray:
        """Log-density of each row; see `ScoringBlockEngine`."""
        components.check(self._layout)
        scaled = [replace(components, covariances=scale * components.covariances) for scale in scales]
        return np.stack([logsumexp(self._log_shares(each, self._seen(each)), axis=1) for each in scaled])

    def _seen(self, components: BlockComponents) -> list[tuple[_Seen, IntArray]]:
        """Return the components as each pattern of observed cells sees them, with the rows of the pattern."""
        return [(_Seen(components, observed), rows) for observed, rows in patterns(~np.isnan(self._values))]

    def _log_shares(self, components: BlockComponents, seen: list[tuple[_Seen, IntArray]]) -> FloatArray:
        """Return log lam[r] + log f(x | r) of each row; shape (n, F)."""
        logs: FloatArray = components.log_weights + np.zeros((len(self._values), 1))
        for column, table in zip(self._others.T, components.tables, strict=True):
            logs += _with_missing(table)[column]
        for state, table in zip(self._states.T, components.spikes, strict=True):
            logs += _with_missing(table)[state]
        for pattern, rows in seen:
            logs[rows] += pattern.log_densities(self._values[rows])
        return logs


class _Seen:
    """Components as rows see them of which only some block cells are observed: o observed, m not."""

    def __init__(self, components: BlockComponents, observed: BoolArray) -> None:
        self.o, self.m = np.flatnonzero(observed), np.flatnonzero(~observed)
        o, m, S = self.o, self.m, components.covariances
        self.mean = components.means[:, o]
        self.inverse_factor = np.linalg.inv(np.linalg.cholesky(S[:, o[:, None], o]))
        # takes observed to missing cells, both centred; shape (F, m, o)
        self.regression = S[:, m[:, None], o] @ np.swapaxes(self.inverse_factor, 1, 2) @ self.inverse_factor
        self.residual = S[:, m[:, None], m] - self.regression @ S[:, o[:, None], m]

    def log_densities(self, values: FloatArray) -> FloatArray:
        """Log-density of the observed cells of rows (n, d) under each Gaussian; shape (n, F)."""
        z = np.einsum("rjo,nro->nrj", self.inverse_factor, values[:, None, self.o] - self.mean)
        log_det = np.log(np.diagonal(self.inverse_factor, axis1=1, axis2=2)).sum(axis=1)
        logs: FloatArray = log_det - 0.5 * ((z**2).sum(axis=2) + len(self.o) * LOG_TAU)
        return logs

    def add_moments(self, values: FloatArray, posteriors: FloatArray, firsts: FloatArray, seconds: FloatArray) -> None:
        """Add the rows' firsts (F, d) and seconds (F, d, d), cells that are not observed completed."""
        o, m, A = self.o, self.m, self.regression
        centred = values[:, None, o] - self.mean
        first = np.einsum("nr,nro->ro", posteriors, centred)
        second = np.einsum("nr,nro,nrp->rop", posteriors, centred, centred)
        cross = A @ second
        firsts[:, o] += first
        firsts[:, m] += np.einsum("rmo,ro->rm", A, first)
        seconds[:, o[:, None], o] += second
        seconds[:, m[:, None], o] += cross
        seconds[:, o[:, None], m] += np.swapaxes(cross, 1, 2)
        spread = posteriors.sum(axis=0)[:, None, None] * self.residual
        seconds[:, m[:, None], m] += cross @ np.swapaxes(A, 1, 2) + spread


def patterns(observed: BoolArray) -> Iterator[tuple[BoolArray, IntArray]]:
    """Yield each pattern of observed cells, shape (d,), with the positions of its rows."""
    if observed.all():
        yield np.ones(observed.shape[1], dtype=bool), np.arange(len(observed))
        return
    found, where = np.unique(observed, axis=0, return_inverse=True)
    order = np.argsort(where.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(where.reshape(-1), minlength=len(found)))
    yield from zip(found, np.split(order, ends[:-1]), strict=True)


def _with_missing(table: FloatArray) -> FloatArray:
    """Return a table with one more row, a factor of one for missing cells; see `LEAST_LOG` for zeros."""
    return np.vstack([np.maximum(table, LEAST_LOG), np.zeros((1, table.shape[1]))])


def _counts(codes: IntArray, posteriors: FloatArray, n_bins: int) -> FloatArray:
    """Sums of posteriors (n, F) by code, without the last code, "missing"; shape (n_bins, F)."""
    columns = [np.bincount(codes, p, minlength=n_bins + 1)[:-1] for p in posteriors.T]
    counts: AnyArray = np.stack(columns, axis=1)
    return counts
