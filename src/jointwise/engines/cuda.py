r"""The passes over rows on an NVIDIA card: one fused kernel each, with the posteriors of a row in registers.

A block of rows sums the logarithms of its bins' factors component by component, turns them into posteriors, and adds
these to the counts of the same bins, without writing a posterior to memory:

.. math:: \log P(r \mid x) = \log \lambda_r + \sum_n \log T_n[x_n, r] + \text{const}, \qquad
          S_n[x_n, r] \leftarrow S_n[x_n, r] + w\,P(r \mid x).

Pair counts work alike: a block of rows adds ones to the table of one pair of columns.

Logarithms are summed in float32. Counts are added in float32 to many tables side by side. No table takes more than a
million rows before it is added up in float64, so its sums keep five digits. The log-likelihood is summed block by block
and added up in float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines.base import PosteriorCounts, PosteriorEngine, bin_starts, padded_bins
from jointwise.exceptions import DeviceError, MissingDependencyError

# Rows of one block, and the most rows that one table of counts takes before it is added up in float64.
BLOCK_ROWS, ROWS_PER_TABLE = 64, 1_000_000
# Bytes of the tables of counts that lie side by side: about half of the card's 50 MB cache.
TABLE_BYTES = 24_000_000
# Codes stay on the card if they take no more than this share of its free memory; else each pass sends them again.
RESIDENT_SHARE = 0.8
STREAM_ROWS = 1 << 25
# Rows of one block of pair counts.
PAIR_ROWS = 1024


def check_cuda() -> None:
    """Raise unless there is an NVIDIA card and the packages that drive it."""
    missing = [name for name in ("torch", "triton") if find_spec(name) is None]
    if missing:
        raise MissingDependencyError(
            f'device="cuda" needs {" and ".join(missing)}; install with: pip install "jointwise[gpu]"'
        )
    import torch

    if not torch.cuda.is_available():
        raise DeviceError('device="cuda" needs an NVIDIA card, but PyTorch finds none here; use device="cpu".')


class CudaEngine(PosteriorEngine):
    """Posterior counts on the card, with the codes kept there or sent block by block; see the module.

    Parameters
    ----------
    codes, n_bins, weights
        As those of `reference.pair_counts`; codes may also be a list of tensors of shape (N, rows) on the card.
    """

    def __init__(self, codes: CodeArray | list[Any], n_bins: Sequence[int], weights: FloatArray | None = None) -> None:
        check_cuda()
        import torch

        starts, self._present = padded_bins(n_bins)
        self._n_padded = int(starts[-1])
        self._starts = torch.as_tensor(starts[:-1], dtype=torch.int32, device="cuda")
        self._blocks = Blocks(codes, weights)

    def posterior_counts(self, tables: FloatArray, mixing: FloatArray) -> PosteriorCounts:
        """One pass over the rows; see `PosteriorEngine`."""
        import torch

        n_components = len(mixing)
        width = max(16, 1 << (n_components - 1).bit_length())
        logs = np.zeros((self._n_padded, width), dtype=np.float32)
        with np.errstate(divide="ignore"):  # a component of weight zero has posterior zero
            logs[self._present, :n_components] = np.log(tables)
            log_mixing = np.full(width, -np.inf, dtype=np.float32)
            log_mixing[:n_components] = np.log(mixing)
        log_tables, log_weights = torch.as_tensor(logs, device="cuda"), torch.as_tensor(log_mixing, device="cuda")
        counts = torch.zeros((self._n_padded, width), dtype=torch.float64, device="cuda")
        totals = torch.zeros(width, dtype=torch.float64, device="cuda")
        log_likelihood = torch.zeros((), dtype=torch.float64, device="cuda")
        for block, weights in self._blocks:
            single = None if weights is None else weights.float()
            some = _launch(block, self._starts, log_tables, log_weights, single)
            counts += some[0]
            totals += some[1]
            log_likelihood += some[2]
        return PosteriorCounts(
            counts.cpu().numpy()[self._present, :n_components],
            totals.cpu().numpy()[:n_components],
            float(log_likelihood),
        )


class Blocks:
    """Blocks of codes on the card with the weights of their rows; each iteration gives all of them.

    They stay on the card if they fit. If not, every pass sends them there one by one, perhaps from a memory-mapped
    file, so neither machine nor card ever holds more than a few.
    """

    def __init__(self, codes: CodeArray | list[Any], weights: FloatArray | None, device: str = "cuda") -> None:
        import torch

        self._codes = codes
        self._weights = weights
        self._device = device
        free = torch.cuda.mem_get_info()[0] if device == "cuda" else np.inf
        if not isinstance(codes, list) and codes.nbytes < RESIDENT_SHARE * free:
            self._codes = list(_sent(codes, device))

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        import torch

        start = 0
        for block in self._codes if isinstance(self._codes, list) else _sent(self._codes, self._device):
            rows = slice(start, start + block.shape[1])
            start = rows.stop
            own = None if self._weights is None else torch.tensor(self._weights[rows], dtype=torch.float64)
            yield block, None if own is None else own.to(self._device)


def _sent(codes: CodeArray, device: str) -> Iterator[Any]:
    """Yield blocks of coded rows as they are sent to the device, each of shape (N, rows)."""
    import torch

    for start in range(0, max(len(codes), 1), STREAM_ROWS):
        part = np.ascontiguousarray(codes[start : start + STREAM_ROWS])
        if not part.flags.writeable:  # PyTorch warns of memory that it must not write
            part = part.copy()
        # PyTorch lacks arithmetic on uint16; int16 carries the same bits
        sent = torch.from_numpy(part.view(np.int16) if part.dtype == np.uint16 else part).to(device)
        yield sent.t().contiguous()  # a column's codes side by side, for neighbouring threads


def unpacked(codes: Any) -> Any:
    """Return sent codes as int64."""
    import torch

    return codes.long() & 0xFFFF if codes.dtype == torch.int16 else codes.long()


def _launch(block: Any, starts: Any, log_tables: Any, log_mixing: Any, weights: Any) -> tuple[Any, Any, Any]:
    """Return counts (bins, F), totals (F,) and log-likelihood of one block of codes, in float64."""
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


def pair_counts(codes: CodeArray | list[Any], n_bins: Sequence[int], weights: FloatArray | None = None) -> AnyArray:
    """Count on the card how often the codes of every pair of columns occur together.

    Counts are exact int64, or float64 sums with weights. See `engines.pair_counts` for the arguments; codes may also
    be a list of tensors of shape (N, rows) on the card.
    """
    check_cuda()
    import torch

    # each column has one more bin, for "missing"; it is cut off at the end
    heights = np.asarray(n_bins) + 1
    pairs = np.array(list(combinations_with_replacement(range(len(n_bins)), 2)))
    places = np.concatenate([[0], np.cumsum(heights[pairs[:, 0]] * heights[pairs[:, 1]])])
    layout = np.column_stack([pairs, places[:-1], heights[pairs[:, 1]]])
    plan = torch.as_tensor(layout, dtype=torch.int64, device="cuda")
    dtype = torch.int64 if weights is None else torch.float64
    flat = torch.zeros(int(places[-1]), dtype=dtype, device="cuda")
    for block, own in Blocks(codes, weights):
        _count_pairs(block, plan, own, flat)
    tables = flat.cpu().numpy()
    starts = bin_starts(n_bins)
    counts = np.zeros((starts[-1], starts[-1]), dtype=tables.dtype)
    for (j, k), begin, end in zip(pairs, places[:-1], places[1:], strict=True):
        table = tables[begin:end].reshape(heights[j], heights[k])[:-1, :-1]
        rows, columns = slice(starts[j], starts[j + 1]), slice(starts[k], starts[k + 1])
        counts[rows, columns], counts[columns, rows] = table, table.T
    return counts


def _count_pairs(block: Any, plan: Any, weights: Any, flat: Any) -> None:
    """Add the pairs of one block of codes to the tables, which are laid end to end in `flat`."""
    import torch
    import triton

    from jointwise.engines._cuda_kernel import pair_kernel

    n = block.shape[1]
    # several sets of tables, or all threads would wait for the few cells of a column with two categories
    n_tables = max(1, min(TABLE_BYTES // flat.nbytes, 64))
    sums = torch.zeros((n_tables, len(flat)), dtype=flat.dtype, device="cuda")
    if n:
        pair_kernel[(triton.cdiv(n, PAIR_ROWS), len(plan))](
            block, n, plan, weights if weights is not None else flat, sums, n_tables, len(flat),
            ROWS=PAIR_ROWS, WEIGHTED=weights is not None, WIDE=block.dtype == torch.int16, num_warps=4,
        )  # fmt: skip
    flat += sums.sum(dim=0)
