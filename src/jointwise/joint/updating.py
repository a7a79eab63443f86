r"""Updating: a mixture goes on from where it is with new rows, as if it had seen some rows before.

With components r of weight :math:`\lambda_r` and parameters :math:`\theta_r`, and the old ones marked by a prime, EM
raises

.. math:: \sum_i \log \sum_r \lambda_r f(x_i \mid \theta_r)
          + w \sum_r \lambda'_r \Big( \log \lambda_r + \mathrm{E}_{x \sim \theta'_r} \log f(x \mid \theta_r) \Big),

so the old mixture counts for w rows, each with its component known: its counts are added to those of the new rows.
Weights, coefficients of atoms, means, covariances and spikes are updated. Atoms, warps and trees stay as they are, and
of a mixture of trees the weights alone are updated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.special import logsumexp

from jointwise._numerics import on_lattice
from jointwise.exceptions import InputError
from jointwise.joint.block import BlockMixture
from jointwise.joint.block_density import MISSING, NUMBER, SPIKE, log_choice, log_density, possible, ways
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.expert import BLOCK, Expert
from jointwise.joint.product import ProductMixture
from jointwise.joint.sum import mixed, parts_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jointwise._typing import FloatArray, IntArray
    from jointwise.dictionary import Dictionary

# Most passes over the new rows, and the change of their mean log-likelihood, in nats, at which passes end. More passes
# follow the noise of the new rows: what other rows gain, they gain in the first few.
MOST_STEPS, TOL = 5, 1e-4
# Fewest rows that the shape of a component counts for, so that a few new rows do not overturn it.
LEAST_ROWS = 20.0
LEAST = 1e-300

# Experts with their shares in a sum.
Parts = list[tuple[Expert, float]]


def updated(mixture: Expert, X: FloatArray, weight: float) -> Expert:
    """Return a mixture after EM on new rows, in which the old one counts for some rows.

    Parameters
    ----------
    mixture : Expert
    X : array of shape (n, N)
        New encoded rows. Cells that the mixture holds impossible are ignored.
    weight : float
        Rows that the mixture counts for, positive.
    """
    impossible = np.isneginf(mixture.logpdf(X))
    if impossible.any():
        X = X.copy()
        X[impossible] = mixture.without_impossible_cells(X[impossible])
    old = now = parts_of(mixture)
    last = -np.inf
    for _ in range(MOST_STEPS):
        likelihood, now = step(old, now, X, weight)
        if likelihood - last <= TOL * len(X):
            break
        last = likelihood
    experts, shares = zip(*now, strict=True)
    return mixed(experts, np.array(shares))


def step(old: Parts, now: Parts, X: FloatArray, weight: float) -> tuple[float, Parts]:
    """Return the log-likelihood of the rows, and the experts after one EM step from ``now``."""
    gathered = [_sums_of(expert) for expert, _ in now]
    ends = np.cumsum([expert.n_components for expert, _ in now])
    totals, likelihood = np.zeros(ends[-1]), 0.0
    for start in range(0, len(X), BLOCK):
        rows = X[start : start + BLOCK]
        logs = np.hstack([expert.component_logpdf(rows) + np.log(share) for expert, share in now])
        evidence = logsumexp(logs, axis=1)
        posterior = np.exp(logs - evidence[:, None])
        likelihood += float(evidence.sum())
        totals += posterior.sum(axis=0)
        for sums, own in zip(gathered, np.split(posterior, ends[:-1], axis=1), strict=True):
            sums.add(rows, own)
    before = np.concatenate([share * expert.weights for expert, share in old])
    weights = np.split((totals + weight * before) / (len(X) + weight), ends[:-1])
    counted = np.split(np.maximum(weight * before, LEAST_ROWS), ends[:-1])
    found: Parts = []
    for (expert, _), sums, own, rows_of in zip(old, gathered, weights, counted, strict=True):
        share = float(own.sum())
        found.append((sums.maximised(expert, own / max(share, LEAST), rows_of), share))
    return likelihood, found


class _Sums:
    """What new rows tell of an expert: here, of the weights of its components alone.

    Parameters
    ----------
    expert : Expert
        As it is at this step.
    """

    def __init__(self, expert: Expert) -> None:
        self._expert = expert

    def add(self, X: FloatArray, posterior: FloatArray) -> None:
        """Add rows, with the probability of each component in each of them; shapes (n, N) and (n, F)."""

    def maximised(self, old: Any, weights: FloatArray, rows: FloatArray) -> Expert:  # noqa: ARG002
        """Return the expert after the step, whose old components count for ``rows`` rows each; shapes (F,)."""
        found: Expert = replace(old, weights=weights)
        return found


class _ProductSums(_Sums):
    """Expected counts of the atoms of each column in each component."""

    def __init__(self, expert: ProductMixture) -> None:
        super().__init__(expert)
        self._now = expert
        self._counts = [np.zeros(b.shape) for b in expert.coefficients]

    def add(self, X: FloatArray, posterior: FloatArray) -> None:
        for n, (dictionary, b) in enumerate(zip(self._now.dictionaries, self._now.coefficients, strict=True)):
            self._counts[n] += atom_counts(dictionary, b, X[:, n], posterior)

    def coefficients(self, old: Sequence[FloatArray], rows: FloatArray) -> tuple[FloatArray, ...]:
        """Return the coefficients with the counts of the old ones added."""
        sums = [counts + rows * before for counts, before in zip(self._counts, old, strict=True)]
        return tuple(each / each.sum(axis=0) for each in sums)

    def maximised(self, old: ProductMixture, weights: FloatArray, rows: FloatArray) -> Expert:
        return replace(old, weights=weights, coefficients=self.coefficients(old.coefficients, rows))


def atom_counts(dictionary: Dictionary, coefficients: FloatArray, x: FloatArray, posterior: FloatArray) -> FloatArray:
    r"""Expected number of rows that come from each atom of a column, in each component; shape (L, F).

    .. math:: c[l, r] = \sum_i P_{ir} \frac{B[l, r] d_l(x_i)}{\sum_k B[k, r] d_k(x_i)}

    Parameters
    ----------
    dictionary : Dictionary
    coefficients : array of shape (L, F)
    x : array of shape (n,)
        Encoded values, NaN for a gap, which does not count.
    posterior : array of shape (n, F)

    Examples
    --------
    >>> from jointwise.dictionary import Dictionary
    >>> counts = atom_counts(Dictionary.categories(2), np.full((2, 1), 0.5), np.array([0.0, 1.0, 1.0]), np.ones((3, 1)))
    >>> counts.ravel()
    array([1., 2.])
    """
    seen = np.flatnonzero(~np.isnan(x))
    values, where = np.unique(x[seen], return_inverse=True)  # each value is evaluated once
    if not len(values):
        return np.zeros(coefficients.shape)
    gather = sparse.csr_matrix((np.ones(len(seen)), (where, seen)), shape=(len(values), len(x)))
    logs = dictionary.logpdf(values)
    height = logs.max(axis=1, keepdims=True)
    densities = np.exp(logs - np.where(np.isfinite(height), height, 0.0))
    shares = (gather @ posterior) / np.maximum(densities @ coefficients, LEAST)
    return np.asarray(coefficients * (densities.T @ shares))


class _BlockSums(_Sums):
    """Expected moments of the Gaussian block, counts of spikes, and counts of the atoms of the other columns."""

    def __init__(self, expert: BlockMixture) -> None:
        super().__init__(expert)
        self._columns, self._others = list(expert.columns), list(expert.others)
        self._block = block = expert.block
        if block.has_window.any() or block.n_coordinates > block.n_columns:
            raise InputError(
                "A density given an interval of a column cannot be updated. Update the density first, then condition."
            )
        self._rest = None if expert.rest is None else _ProductSums(expert.rest)
        self._centre = block.means.mean(axis=0)  # so that no digits cancel where means are large
        n, d = block.means.shape
        self._totals, self._firsts, self._seconds = np.zeros(n), np.zeros((n, d)), np.zeros((n, d, d))
        self._spikes = [np.zeros((1 + len(spikes), n)) for spikes in block.spikes]

    def add(self, X: FloatArray, posterior: FloatArray) -> None:
        if self._rest is not None:
            self._rest.add(X[:, self._others], posterior)
        seen = X[:, self._columns]
        kept = np.flatnonzero(possible(self._block, seen))
        seen, posterior = seen[kept], posterior[kept]
        whole = log_density(self._block, seen)
        for own, choice, at in ways(self._block, seen):
            part = log_choice(self._block, choice, seen[own], at)
            # an integer may be a spike or not, so that a row comes in several ways
            share = np.exp(part - np.where(np.isfinite(whole[own]), whole[own], np.inf))
            self._add_way(choice, seen[own], at, posterior[own] * share)

    def _add_way(self, choice: IntArray, X: FloatArray, at: IntArray, posterior: FloatArray) -> None:
        """Add rows whose cells all say the same kind of thing."""
        for c in np.flatnonzero(choice != MISSING):
            if choice[c] == SPIKE:
                np.add.at(self._spikes[c], 1 + at[:, c], posterior)
            else:
                self._spikes[c][0] += posterior.sum(axis=0)
        given, rest = np.flatnonzero(choice == NUMBER), np.flatnonzero(choice != NUMBER)
        z = np.empty((len(X), len(given)))
        for k, c in enumerate(given):
            z[:, k] = self._block.warps[c](X[:, c]) - self._centre[c]
        here = np.isfinite(z).all(axis=1)
        z, posterior = z[here], posterior[here]
        total, first = posterior.sum(axis=0), posterior.T @ z
        second = np.stack([(weights[:, None] * z).T @ z for weights in posterior.T])
        self._totals += total
        self._firsts[:, given] += first
        self._seconds[:, given[:, None], given] += second
        if len(rest):
            self._add_missing(given, rest, total, first, second)

    def _add_missing(
        self, given: IntArray, rest: IntArray, total: FloatArray, first: FloatArray, second: FloatArray
    ) -> None:
        """Add the expected moments of coordinates that rows do not show, which are linear in those that they do."""
        means, covariances = self._block.means - self._centre, self._block.covariances
        cross = covariances[:, given][:, :, rest]
        gain = np.linalg.solve(covariances[:, given][:, :, given], cross)  # (F, given, rest)
        left = covariances[:, rest][:, :, rest] - np.swapaxes(gain, 1, 2) @ cross
        offset = means[:, rest] - np.einsum("fk,fkr->fr", means[:, given], gain)
        lines = np.einsum("fk,fkr->fr", first, gain)
        mixed_second = second @ gain + first[:, :, None] * offset[:, None, :]
        both = lines[:, :, None] * offset[:, None, :]
        own = np.swapaxes(gain, 1, 2) @ second @ gain + both + np.swapaxes(both, 1, 2)
        own += total[:, None, None] * (offset[:, :, None] * offset[:, None, :] + left)
        self._firsts[:, rest] += lines + total[:, None] * offset
        self._seconds[:, given[:, None], rest] += mixed_second
        self._seconds[:, rest[:, None], given] += np.swapaxes(mixed_second, 1, 2)
        self._seconds[:, rest[:, None], rest] += own

    def maximised(self, old: BlockMixture, weights: FloatArray, rows: FloatArray) -> Expert:
        before, n = old.block, (self._totals + rows)[:, None]
        start = before.means - self._centre
        means = (self._firsts + rows[:, None] * start) / n
        cross = means[:, :, None] * self._firsts[:, None, :]
        away = start - means
        scatters = self._seconds - cross - np.swapaxes(cross, 1, 2)
        scatters += self._totals[:, None, None] * means[:, :, None] * means[:, None, :]
        scatters += rows[:, None, None] * (before.covariances + away[:, :, None] * away[:, None, :])
        covariances = (scatters + np.swapaxes(scatters, 1, 2)) / 2 / n[:, :, None]
        spikes = tuple(
            (counts[1:] + rows * each) / (counts.sum(axis=0) + rows)
            for counts, each in zip(self._spikes, before.spike_weights, strict=True)
        )
        block = GaussianBlock(
            before.warps,
            means + self._centre,
            on_lattice(covariances, _lattice(before)),
            before.spikes,
            spikes,
            before.whole,
        )
        coefficients = () if self._rest is None else self._rest.coefficients(old.coefficients, rows)
        return replace(old, weights=weights, block=block, coefficients=coefficients)


def _lattice(block: GaussianBlock) -> FloatArray:
    """Distance of neighbouring integers in the block's units, the largest of all components; zero for other columns."""
    out = np.zeros(block.n_columns)
    for c in np.flatnonzero(block.whole):
        warp = block.warps[c]
        out[c] = np.exp(warp.log_slope(warp.inverse(block.means[:, c]))).max()
    return out


def _sums_of(expert: Expert) -> _Sums:
    if isinstance(expert, ProductMixture):
        return _ProductSums(expert)
    return _BlockSums(expert) if isinstance(expert, BlockMixture) else _Sums(expert)
