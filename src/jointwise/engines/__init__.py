"""Engines: the passes over coded rows, arrays in and out.

`subset_counts` counts any subsets of columns, such as triples, and `pair_counts` all pairs; both are one code in plain
numpy, quick enough for millions of rows. The posterior-count pass of EM comes twice: `ReferenceEngine` is plain and
needs no compiler, `compiled.CompiledEngine` is for large tables, and `posterior_engine` picks one.
"""

from __future__ import annotations

from collections.abc import Sequence

from jointwise._typing import CodeArray, FloatArray
from jointwise.engines.base import PosteriorCounts, PosteriorEngine
from jointwise.engines.reference import ReferenceEngine, Subset, pair_counts, subset_counts

__all__ = [
    "PosteriorCounts",
    "PosteriorEngine",
    "ReferenceEngine",
    "Subset",
    "pair_counts",
    "posterior_engine",
    "subset_counts",
]

# Cells of a table from which on compiled passes pay for loading the compiler (about a second once it has been used).
COMPILED_CELLS = 50_000


def posterior_engine(
    codes: CodeArray,
    n_bins: Sequence[int],
    weights: FloatArray | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
) -> PosteriorEngine:
    """Rows ready for posterior counts: on the card if asked for, compiled for large tables, plain for small ones."""
    if device == "cuda":
        from jointwise.engines.cuda import CudaEngine  # loads PyTorch

        return CudaEngine(codes, n_bins, weights)
    if codes.size < COMPILED_CELLS:
        return ReferenceEngine(codes, n_bins, weights)
    from jointwise.engines.compiled import CompiledEngine  # loads numba, which small fits need not wait for

    return CompiledEngine(codes, n_bins, weights, n_threads)
