"""Engines: the passes over coded rows, arrays in and out.

`subset_counts` counts any subsets of columns, such as triples, and `pair_counts` counts all pairs. Small tables are
counted in plain numpy; `compiled_tables` codes large ones and counts their pairs. The posterior-count pass of EM has
two versions for the processor: `ReferenceEngine` is plain, to read and to test with, and `compiled.CompiledEngine` is
what `posterior_engine` returns. `cuda` has both passes for a graphics card. `blocks` has the pass over columns
that a component sees through a Gaussian, and `trees` the passes over mixtures of trees. `compiled_splines` has the
maps of columns at many values.
"""

from __future__ import annotations

from collections.abc import Sequence

from jointwise._typing import AnyArray, CodeArray, FloatArray
from jointwise.engines import reference
from jointwise.engines.base import PosteriorCounts, PosteriorEngine, bin_starts
from jointwise.engines.reference import ReferenceEngine, Subset, subset_counts

__all__ = [
    "COMPILED_TABLE_CELLS",
    "PosteriorCounts",
    "PosteriorEngine",
    "ReferenceEngine",
    "Subset",
    "bin_starts",
    "pair_counts",
    "posterior_engine",
    "subset_counts",
]

# From this many cells on, compiled coding and counting, which take one pass rather than hundreds, repay loading it.
COMPILED_TABLE_CELLS = 500_000


def pair_counts(
    codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None, device: str = "cpu"
) -> AnyArray:
    """Count all pairs of columns as `reference.pair_counts` does; with compiled code for large tables, or on the card.

    Weighted counts depend on the order of additions, so on the processor the reference code alone adds them.
    """
    if device == "cuda":
        from jointwise.engines import cuda

        return cuda.pair_counts(codes, n_bins, weights)
    if weights is not None or codes.size < COMPILED_TABLE_CELLS:
        return reference.pair_counts(codes, n_bins, weights)
    from jointwise.engines import compiled_tables

    return compiled_tables.pair_counts(codes, n_bins)


def posterior_engine(
    codes: CodeArray,
    n_bins: Sequence[int],
    weights: FloatArray | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
) -> PosteriorEngine:
    """Return an engine over the rows: on the card if asked for, else compiled."""
    if device == "cuda":
        from jointwise.engines.cuda import CudaEngine  # loads PyTorch

        return CudaEngine(codes, n_bins, weights)
    from jointwise.engines.compiled import CompiledEngine  # loads numba

    return CompiledEngine(codes, n_bins, weights, n_threads)
