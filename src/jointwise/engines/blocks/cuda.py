r"""The pass over a Gaussian block on an NVIDIA card, in float64, by batches of small matrix products.

Rows are sorted by their pattern of observed cells and cut into tiles of rows with one pattern. All tiles of a batch are
computed side by side, whatever their patterns. With :math:`M` the diagonal matrix of a pattern, one for an observed
cell,

.. math:: \tilde\Sigma = M \Sigma M + I - M, \qquad K = M \tilde\Sigma^{-1} M, \qquad A = M + (I - M)\,\Sigma K,

so that matrices have the same size for all patterns: :math:`A` takes centred observed cells to all cells, and the
Cholesky factor of :math:`\tilde\Sigma` whitens the observed cells and leaves the others alone. One long pattern and
thousands of short ones go the same way.

Counts are added to several tables side by side, as in `engines.cuda`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from jointwise._typing import CodeArray, FloatArray
from jointwise.engines.blocks.base import LOG_TAU, BlockComponents, BlockEngine, BlockLayout, BlockSums
from jointwise.engines.cuda import TABLE_BYTES, Blocks, check_cuda, unpacked

# Rows of a tile; and bytes of all arrays of a batch of tiles.
TILE_ROWS, BATCH_BYTES = 64, 1 << 30
# Cells of a pattern that one integer can hold.
WORD = 62


class CudaBlockEngine(BlockEngine):
    """Sums of a pass on the card, with the codes kept there or sent block by block; see the module.

    Parameters
    ----------
    codes, layout, weights
        As those of `ReferenceBlockEngine`; codes may also be a list of tensors of shape (N, rows) on the card.
    device : str
        A device of PyTorch: "cpu" computes the same without a card, slowly.
    """

    def __init__(
        self,
        codes: CodeArray | list[Any],
        layout: BlockLayout,
        weights: FloatArray | None = None,
        device: str = "cuda",
    ) -> None:
        if device == "cuda":
            check_cuda()
        self._layout = layout
        self._device = device
        self._blocks = Blocks(codes, weights, device)
        self._values = [self._sent(w) for w in layout.values]

    def _sent(self, array: Any) -> Any:
        import torch

        return torch.as_tensor(np.array(array), device=self._device)

    def sums(self, components: BlockComponents) -> BlockSums:
        """One pass over the rows; see `BlockEngine`."""
        components.check(self._layout)
        stacked = self._layout.stacked(components)
        no_spike = self._layout.table_starts[len(self._layout.others) : -1]
        sent = (components.log_weights, components.means, components.covariances, stacked, no_spike)
        mixture = _Mixture(*map(self._sent, sent))
        for block, weights in self._blocks:
            if block.shape[1]:
                self._add_block(mixture, block, weights)
        totals, firsts, seconds, counts, likelihood = (each.cpu().numpy() for each in mixture.sums())
        return BlockSums(totals, firsts, seconds, *self._layout.unstacked(counts), float(likelihood))

    def _add_block(self, mixture: _Mixture, block: Any, weights: Any) -> None:
        """Add a block of codes (N, n), batch by batch."""
        import torch

        layout = self._layout
        unseen = torch.stack(
            [unpacked(block[n]) >= len(w) for n, w in zip(layout.columns, layout.values, strict=True)]
            or [torch.zeros(0, dtype=torch.bool, device=self._device)]
        )
        patterns, order, tiles = _tiles(unseen[: layout.d], block.shape[1])
        F, d = mixture.means.shape
        n_tiles = max(1, BATCH_BYTES // (8 * F * (10 * d * d + 5 * TILE_ROWS * (d + 1))))  # about that many arrays
        for start in range(0, len(tiles), n_tiles):
            chosen = tiles[start : start + n_tiles]
            place = chosen[:, 1, None] + torch.arange(TILE_ROWS, device=self._device)
            here = place < chosen[:, 2, None]
            place = torch.where(here, place, 0)
            rows = place if order is None else order[place]
            weight = here.double() if weights is None else here * weights[rows]
            first, last = int(chosen[0, 0]), int(chosen[-1, 0]) + 1
            seen = patterns[first:last].double()
            values, places = self._looked_up(block, rows)
            mixture.add(values, places, weight, seen, chosen[:, 0] - first)

    def _looked_up(self, block: Any, rows: Any) -> tuple[Any, Any]:
        """Return values (tiles, rows, d), zero where not observed, and places in the tables (tiles, rows, columns)."""
        import torch

        layout, places = self._layout, []
        starts = layout.table_starts.tolist()
        for n, start in zip(layout.others, starts, strict=False):
            places.append(unpacked(block[n][rows]) + start)
        values = torch.zeros((*rows.shape, layout.d), dtype=torch.float64, device=self._device)
        for j, (n, w) in enumerate(zip(layout.columns, self._values, strict=True)):
            code = unpacked(block[n][rows])
            inside = code < len(w)
            if len(w):
                values[..., j] = torch.where(inside, w[torch.where(inside, code, 0)], 0.0)
            if layout.n_spikes[j]:  # "at no spike" is known from the pattern, so it counts as missing here
                place = torch.where(inside, layout.n_bins[n], code) - len(w) + 1
                places.append(place + starts[len(layout.others) + j])
        if not places:
            return values, torch.zeros((*rows.shape, 0), dtype=torch.int64, device=self._device)
        return values, torch.stack(places, dim=-1)


class _Mixture:
    """The components on the card, and the sums of the rows seen so far.

    `no_spike` has the place of "at no spike" in the tables, for each block column.
    """

    def __init__(self, log_weights: Any, means: Any, covariances: Any, tables: Any, no_spike: Any) -> None:
        import torch

        self.log_weights, self.means, self.covariances = log_weights, means, covariances
        self.tables, self.no_spike = tables, no_spike
        self._totals, self._firsts = torch.zeros_like(log_weights), torch.zeros_like(means)
        self._seconds = torch.zeros_like(covariances)
        # several tables, or all threads would wait for the few cells of a column with two categories
        self._n_copies = max(1, min(TABLE_BYTES // max(tables.nbytes, 1), 1024))
        self._counts = tables.new_zeros((self._n_copies * len(tables), tables.shape[1]))
        self._likelihood = log_weights.new_zeros(())

    def sums(self) -> tuple[Any, Any, Any, Any, Any]:
        """Return totals, firsts, seconds, stacked counts and log-likelihood."""
        counts = self._counts.reshape(self._n_copies, *self.tables.shape).sum(dim=0)
        return self._totals, self._firsts, self._seconds, counts, self._likelihood

    def add(self, values: Any, places: Any, weight: Any, seen: Any, pattern: Any) -> None:
        """Add tiles of rows.

        values (tiles, rows, d), places (tiles, rows, columns), weight (tiles, rows), seen (patterns, d): one for an
        observed cell; pattern (tiles,): which of them the tile has.
        """
        import torch

        d = self.means.shape[1]
        mask = seen[:, None, :, None] * seen[:, None, None, :]
        masked = self.covariances * mask + torch.diag_embed(1 - seen)[:, None]
        factors = torch.linalg.cholesky(masked)
        identity = torch.eye(d, dtype=torch.float64, device=seen.device).expand_as(factors)
        whitening = torch.linalg.solve_triangular(factors, identity, upper=False)
        log_heights = torch.log(whitening.diagonal(dim1=-2, dim2=-1)).sum(dim=-1)
        log_norms = self.log_weights + log_heights - 0.5 * LOG_TAU * seen.sum(dim=1, keepdim=True)  # (patterns, F)
        log_norms += seen @ self.tables[self.no_spike]

        centred = (values[:, None] - self.means[:, None]) * seen[pattern][:, None, None]  # (tiles, F, rows, d)
        z = centred @ whitening[pattern].transpose(-1, -2)
        logs = log_norms[pattern][:, :, None] - 0.5 * (z * z).sum(dim=-1)
        logs = logs.transpose(1, 2) + self._log_tables(places)  # (tiles, rows, F)
        log_density = torch.logsumexp(logs, dim=-1)
        self._likelihood += (weight * log_density).sum()
        posterior = torch.exp(logs - log_density[..., None]) * weight[..., None]
        self._count(places.flatten(0, 1), posterior.flatten(0, 1))

        shares = posterior.transpose(1, 2)  # (tiles, F, rows)
        weighted = shares[..., None] * centred
        totals = _by_pattern(shares.sum(dim=-1), pattern, len(seen))
        firsts = _by_pattern(weighted.sum(dim=-2), pattern, len(seen))
        seconds = _by_pattern(weighted.transpose(-1, -2) @ centred, pattern, len(seen))
        self._totals += totals.sum(dim=0)
        self._counts[self.no_spike] += seen.T @ totals
        # cells that are not observed, from the regression on the others
        unseen = 1 - seen
        both_unseen = (unseen[:, :, None] * unseen[:, None, :])[:, None]
        precision = whitening.transpose(-1, -2) @ whitening * mask
        regression = self.covariances @ precision
        completing = torch.diag_embed(seen)[:, None] + unseen[:, None, :, None] * regression
        residual = (self.covariances - regression @ self.covariances) * both_unseen
        self._firsts += (completing @ firsts[..., None]).sum(dim=0)[..., 0]
        self._seconds += (completing @ seconds @ completing.transpose(-1, -2)).sum(dim=0)
        self._seconds += (totals[..., None, None] * residual).sum(dim=0)

    def _log_tables(self, places: Any) -> Any:
        """Sum of the logarithms at the places of each row; shape (tiles, rows, F)."""
        logs = self.tables.new_zeros((*places.shape[:2], self.tables.shape[1]))
        for column in range(places.shape[-1]):
            logs += self.tables[places[..., column]]
        return logs

    def _count(self, places: Any, posterior: Any) -> None:
        """Add posteriors (n, F) at the places (n, columns) of their rows; neighbouring rows use different tables."""
        import torch

        copy = torch.arange(len(places), device=places.device) % self._n_copies * len(self.tables)
        for column in range(places.shape[1]):
            self._counts.index_add_(0, places[:, column] + copy, posterior)


def _by_pattern(values: Any, pattern: Any, n_patterns: int) -> Any:
    """Sum the values of tiles by pattern; shape (n_patterns, ...)."""
    if n_patterns == 1:
        return values.sum(dim=0, keepdim=True)
    return values.new_zeros((n_patterns, *values.shape[1:])).index_add_(0, pattern, values)


def _tiles(unseen: Any, n: int) -> tuple[Any, Any, Any]:
    """Cut rows into tiles of one pattern each.

    Parameters
    ----------
    unseen : tensor of shape (d, n)
        Whether a cell is missing or at a spike.
    n : int

    Returns
    -------
    patterns : tensor of shape (patterns, d)
        Whether a cell is observed.
    order : tensor of shape (n,) or None
        Rows sorted by pattern; None if all are complete.
    tiles : tensor of shape (tiles, 3)
        Pattern, first place, and end of the pattern's places.
    """
    import torch

    device = unseen.device
    if not bool(unseen.any()):
        patterns = torch.ones((1, len(unseen)), dtype=torch.bool, device=device)
        order, lengths = None, torch.tensor([n], device=device)
    else:
        key = torch.zeros(n, dtype=torch.int64, device=device)
        for word in _words(unseen):
            both = torch.unique(word, return_inverse=True)[1]
            key = torch.unique(key * (both.max() + 1) + both, return_inverse=True)[1]
        order = torch.argsort(key, stable=True)
        lengths = torch.bincount(key)
        patterns = ~unseen[:, order[lengths.cumsum(0) - lengths]].T
    ends = lengths.cumsum(0)
    pattern = torch.repeat_interleave(torch.arange(len(lengths), device=device), -(-lengths // TILE_ROWS))
    place = torch.arange(len(pattern), device=device)
    first_tile = torch.searchsorted(pattern, pattern)  # of the same pattern
    begin = (ends - lengths)[pattern] + (place - first_tile) * TILE_ROWS
    return patterns, order, torch.stack([pattern, begin, ends[pattern]], dim=1)


def _words(unseen: Any) -> Iterator[Any]:
    """Yield the patterns (d, n) as integers (n,), some cells at a time."""
    import torch

    for start in range(0, len(unseen), WORD):
        some = unseen[start : start + WORD]
        word = torch.zeros(some.shape[1], dtype=torch.int64, device=some.device)
        for cell in some:
            word = word * 2 + cell
        yield word
