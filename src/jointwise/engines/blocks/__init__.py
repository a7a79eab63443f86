"""Passes over a Gaussian block and its product columns, arrays in and out.

`BlockLayout` says which columns form the block, `BlockComponents` is the mixture, and `BlockSums`, which add up, are
what one pass gives an EM step. `block_engine` picks the engine: plain for small tables, compiled for large ones, or on
the card.
"""

from __future__ import annotations

from jointwise._typing import CodeArray, FloatArray
from jointwise.engines.blocks.base import BlockComponents, BlockEngine, BlockLayout, BlockSums, ScoringBlockEngine
from jointwise.engines.blocks.reference import ReferenceBlockEngine

__all__ = [
    "BlockComponents",
    "BlockEngine",
    "BlockLayout",
    "BlockSums",
    "ReferenceBlockEngine",
    "ScoringBlockEngine",
    "block_engine",
    "scoring_engine",
]

# From this many cells on, compiled passes repay loading the compiler: a fit makes hundreds, ten times faster each.
COMPILED_BLOCK_CELLS = 100


def block_engine(
    codes: CodeArray,
    layout: BlockLayout,
    weights: FloatArray | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
) -> BlockEngine:
    """Return an engine over the rows: on the card if asked for, compiled for large tables, plain for small ones."""
    if device == "cuda":
        from jointwise.engines.blocks.cuda import CudaBlockEngine  # loads PyTorch

        return CudaBlockEngine(codes, layout, weights)
    return scoring_engine(codes, layout, weights, n_threads)


def scoring_engine(
    codes: CodeArray, layout: BlockLayout, weights: FloatArray | None = None, n_threads: int | None = None
) -> ScoringBlockEngine:
    """Return an engine over rows in memory that also scores them: compiled for large tables, plain for small ones."""
    if codes.size < COMPILED_BLOCK_CELLS:
        return ReferenceBlockEngine(codes, layout, weights)
    from jointwise.engines.blocks.compiled import CompiledBlockEngine  # loads numba, which small fits do not need

    return CompiledBlockEngine(codes, layout, weights, n_threads)
