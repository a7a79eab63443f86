"""Passes over a mixture of trees, arrays in and out.

`Forest` has the trees, `TreeComponents` is the mixture, and `EdgeSums` and `PairSums`, which add up, are what one pass
gives an EM step.
"""

from __future__ import annotations

from jointwise.engines.trees.base import (
    EdgeSums,
    Forest,
    PairSums,
    TreeComponents,
    TreeEngine,
    pair_starts,
)

__all__ = ["EdgeSums", "Forest", "PairSums", "TreeComponents", "TreeEngine", "pair_starts"]
