"""Mixtures with a Gaussian block: columns that are correlated within components, the others as products.

:func:`fit_blocks` takes coded rows and :class:`BlockOptions` and returns a :class:`BlockFit`. `columns` says which
columns form the block, `warps` how each is bent, `design` gathers what follows from columns alone, and `designs` has
one for each set of rows. `start` finds groups of rows, `choice` the number of components and the strength of the prior,
and `fit` runs EM.
"""

from jointwise.fitting.blocks.choice import BlockChoice, choose_blocks
from jointwise.fitting.blocks.columns import choose_columns, is_positive
from jointwise.fitting.blocks.fit import fit_blocks
from jointwise.fitting.blocks.options import BlockOptions
from jointwise.fitting.blocks.result import BlockFit
from jointwise.fitting.blocks.warps import WARPS

__all__ = [
    "WARPS",
    "BlockChoice",
    "BlockFit",
    "BlockOptions",
    "choose_blocks",
    "choose_columns",
    "fit_blocks",
    "is_positive",
]
