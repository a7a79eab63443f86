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

# From this many cells on, compiled coding, which takes one pass rather than hundreds, repays loading it; and from this
# many pairs of cells of a row on, in all rows, compiled counting does.
COMPILED_TABLE_CELLS, COMPILED_PAIRS = 500_000, 2_000_000


def pair_counts(
    codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None = None, device: str = "cpu"
) -> AnyArray:
    """Count all pairs of columns as `reference.pair_counts` does; with compiled code for many pairs, or on the card.

    Weighted counts depend on the order of additions, so on the processor the compiled code adds them only where its
    order is that of the reference code.
    """
    if device == "cuda":
        from jointwise.engines import cuda

        return cuda.pair_counts(codes, n_bins, weights)
    same_order = weights is None or len(codes) <= reference.SHORTEST_BLOCK
    if codes.size * len(n_bins) < COMPILED_PAIRS or not same_order:
        return reference.pair_counts(codes, n_bins, weights)
    from jointwise.engines import compiled_tables

    return compiled_tables.pair_counts(codes, n_bins, weights)


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
