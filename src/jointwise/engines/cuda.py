r"""The posterior-count pass on an NVIDIA card: one fused kernel, a row's posteriors in registers.

A block of rows sums the logarithms of its bins' factors component by component, turns them into posteriors, and adds
these to the counts of the same bins, all without writing a posterior to memory:

.. math:: \log P(r \mid x) = \log \lambda_r + \sum_n \log T_n[x_n, r] + \text{const}, \qquad
          S_n[x_n, r] \leftarrow S_n[x_n, r] + w\,P(r \mid x).

Logarithms are summed in float32. Counts are added in float32 to many tables side by side, none of which sees more than
a million rows before it is added up in float64: a sum of so many terms keeps five digits. Row sums of the
log-likelihood are taken block by block and added up in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from jointwise._typing import CodeArray, FloatArray
from jointwise.engines.base import PosteriorCounts, PosteriorEngine, bin_starts
from jointwise.exceptions import DeviceError, MissingDependencyError

# Rows of one block, and the most that one table of counts takes up before it is added up in float64.
BLOCK_ROWS, ROWS_PER_TABLE = 64, 1_000_000
# Tables of counts side by side may take so much of the card's 50 MB cache.
TABLE_BYTES = 24_000_000
# Codes stay on the card while they leave this share of its free memory; else they are sent block by block.
RESIDENT_SHARE = 0.8
STREAM_ROWS = 1 << 25


def check_cuda() -> None:
    """Refuse, in a sentence, where there is no card or no package to drive it."""
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f'device="cuda" needs {" and ".join(missing)}; install with: pip install "jointwise[gpu]"'
        )
    import torch

    if not torch.cuda.is_available():
        raise DeviceError('device="cuda" was asked for, but PyTorch finds no NVIDIA card here; use device="cpu".')


class CudaEngine(PosteriorEngine):
    """Rows as they are coded, on the card or sent there block by block; see the module.

    Parameters
    ----------
    codes : array of shape (n, N), uint8 or uint16, or a list of tensors of shape (N, rows) on the card
        Column n holds 0 to n_bins[n] - 1, or n_bins[n] where a value is missing.
    n_bins : sequence of N ints
    weights : array of shape (n,), optional
    """

    def __init__(self, codes: CodeArray | list[Any], n_bins: Sequence[int], weights: FloatArray | None = None) -> None:
        check_cuda()
        import torch

        # one more bin per column, for "missing"
        starts = bin_starts([bins + 1 for bins in n_bins])
        self._present = np.delete(np.arange(starts[-1]), starts[1:] - 1)
        self._n_padded = int(starts[-1])
        self._starts = torch.as_tensor(starts[:-1], dtype=torch.int32, device="cuda")
        self._blocks: list[Any] = codes if isinstance(codes, list) else list(_on_card_if_it_fits(codes))
        self._weights = None if weights is None else torch.as_tensor(weights, dtype=torch.float32)

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        import torch

        rank = len(mixing)
        width = max(16, 1 << (rank - 1).bit_length())
        logs = np.zeros((self._n_padded, width), dtype=np.float32)
        with np.errstate(divide="ignore"):  # a component of weight zero has no part in anything
            logs[self._present, :rank] = np.log(tables)
            log_mixing = np.full(width, -np.inf, dtype=np.float32)
            log_mixing[:rank] = np.log(mixing)
        log_tables, log_weights = torch.as_tensor(logs, device="cuda"), torch.as_tensor(log_mixing, device="cuda")
        counts = torch.zeros((self._n_padded, width), dtype=torch.float64, device="cuda")
        totals = torch.zeros(width, dtype=torch.float64, device="cuda")
        log_likelihood = torch.zeros((), dtype=torch.float64, device="cuda")
        for block, weights in self._parts():
            some = _launch(block, self._starts, log_tables, log_weights, weights)
            counts += some[0]
            totals += some[1]
            log_likelihood += some[2]
        return PosteriorCounts(
            counts.cpu().numpy()[self._present, :rank], totals.cpu().numpy()[:rank], float(log_likelihood)
        )

    def _parts(self) -> Iterator[tuple[Any, Any]]:
        """Blocks of codes on the card with their weights."""
        start = 0
        for block in self._blocks:
            rows = slice(start, start + block.shape[1])
            start = rows.stop
            weights = None if self._weights is None else self._weights[rows].cuda(non_blocking=True)
            yield block.cuda(non_blocking=True), weights


def _on_card_if_it_fits(codes: CodeArray) -> Iterator[Any]:
    """Blocks of codes, each column contiguous: tensors on the card, or in pinned memory beside it."""
    import torch

    free, _ = torch.cuda.mem_get_info()
    fits = codes.nbytes < RESIDENT_SHARE * free
    for start in range(0, max(len(codes), 1), STREAM_ROWS):
        columns = np.ascontiguousarray(codes[start : start + STREAM_ROWS].T)
        # the card has no arithmetic on uint16, but the same bits
        block = torch.from_numpy(columns.view(np.int16) if columns.dtype == np.uint16 else columns)
        yield block.cuda() if fits else block.pin_memory()


def _launch(block: Any, starts: Any, log_tables: Any, log_mixing: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Counts (bins, F), totals (F,) and log-likelihood of one block of codes, in float64."""
    import torch
    import triton

    from jointwise.engines._cuda_kernel import posterior_kernel

    n_columns, n = block.shape
    n_padded, width = log_tables.shape
    counts = torch.zeros((n_padded, width), dtype=torch.float64, device="cuda")
    totals = torch.zeros(width, dtype=torch.float64, device="cuda")
    log_likelihood = torch.zeros((), dtype=torch.float64, device="cuda")
    n_tables = max(1, min(TABLE_BYTES // log_tables.nbytes, 1024))
    step = n_tables * ROWS_PER_TABLE
    for start in range(0, n, step):
        rows = min(step, n - start)
        n_programs = triton.cdiv(rows, BLOCK_ROWS)
        sums = torch.zeros((n_tables, n_padded, width), dtype=torch.float32, device="cuda")
        row_sums = torch.empty((n_programs, width + 1), dtype=torch.float32, device="cuda")
        posterior_kernel[(n_programs,)](
            block, n, start, start + rows, n_columns, starts, log_tables, log_mixing,
            weights if weights is not None else log_mixing, sums, row_sums, n_tables, n_padded,
            WIDTH=width, ROWS=BLOCK_ROWS, WEIGHTED=weights is not None, WIDE=block.dtype == torch.int16, num_warps=4,
        )  # fmt: skip
        counts += sums.sum(dim=0, dtype=torch.float64)
        added = row_sums.sum(dim=0, dtype=torch.float64)
        totals += added[:width]
        log_likelihood += added[width]
    return counts, totals, log_likelihood
