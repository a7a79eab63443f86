"""Passes over a mixture of trees, arrays in and out.

`Forest` has the trees, `TreeComponents` is the mixture, and `EdgeSums` and `PairSums`, which add up, are what one pass
gives an EM step. States are the codes of the rows, or hidden ones with `Emissions`. `tree_engine` picks the engine:
plain for small tables, compiled for large ones, or on the card.
"""

from __future__ import annotations

from collections.abc import Sequence

from jointwise._typing import CodeArray, FloatArray
from jointwise.engines.trees.base import (
    EdgeSums,
    Forest,
    PairSums,
    TreeComponents,
    TreeEngine,
    check_pairs,
    pair_starts,
)
from jointwise.engines.trees.emissions import Emissions
from jointwise.engines.trees.reference import ReferenceTreeEngine

__all__ = [
    "EdgeSums",
    "Emissions",
    "Forest",
    "PairSums",
    "ReferenceTreeEngine",
    "TreeComponents",
    "TreeEngine",
    "check_pairs",
    "pair_starts",
    "tree_engine",
]

# From this many cells on, compiled passes repay loading the compiler: a fit makes dozens, a hundred times faster each.
COMPILED_TREE_CELLS = 100


def tree_engine(
    codes: CodeArray,
    n_bins: Sequence[int],
    weights: FloatArray | None = None,
    device: str = "cpu",
    n_threads: int | None = None,
    emissions: Emissions | None = None,
) -> TreeEngine:
    """Return an engine over the rows: on the card if asked for, compiled for large tables, plain for small ones.

    Hidden states, those with emissions, are never on the card.
    """
    if emissions is not None:
        return _overlapping(codes, n_bins, weights, emissions, n_threads)
    if device == "cuda":
        from jointwise.engines.trees.cuda import CudaTreeEngine  # loads PyTorch

        return CudaTreeEngine(codes, n_bins, weights)
    if codes.size < COMPILED_TREE_CELLS:
        return ReferenceTreeEngine(codes, n_bins, weights)
    from jointwise.engines.trees.compiled import CompiledTreeEngine  # loads numba, which small fits do not need

    return CompiledTreeEngine(codes, n_bins, weights, n_threads)


def _overlapping(
    codes: CodeArray, n_bins: Sequence[int], weights: FloatArray | None, emissions: Emissions, n_threads: int | None
) -> TreeEngine:
    if codes.size < COMPILED_TREE_CELLS:
        return ReferenceTreeEngine(codes, n_bins, weights, emissions)
    from jointwise.engines.trees.overlapping import OverlappingTreeEngine  # loads numba, as above

    return OverlappingTreeEngine(codes, n_bins, weights, emissions, n_threads)
