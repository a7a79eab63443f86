"""A density as what the page computes with: columns with their cells, dictionaries of atoms, and experts."""

from __future__ import annotations

from typing import Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.explore.cells import Cells, cells_of
from jointwise.joint import JointDensity
from jointwise.joint.block import BlockMixture
from jointwise.joint.expert import Expert
from jointwise.joint.forest import ForestMixture
from jointwise.joint.product import ProductMixture
from jointwise.joint.sum import parts_of
from jointwise.tables.variables import Variable, as_text

VERSION = 1
# Most numbers of a model on a page: its file would have some hundred megabytes.
MOST_NUMBERS = 1 << 26


def exported(density: JointDensity, title: str = "", rows: FloatArray | None = None) -> dict[str, Any]:
    """Return plain values and arrays that hold all of a density.

    Parameters
    ----------
    density : JointDensity
    title : str
        What the page is about.
    rows : array of shape (n, N), optional
        Encoded rows that are drawn as dots; without them nothing of a table goes along.

    Examples
    --------
    >>> from jointwise.datasets import hybrid
    >>> sorted(exported(hybrid(rng=0)))
    ['columns', 'dictionaries', 'experts', 'shares', 'title', 'version']
    """
    book = _Book()
    experts, shares = zip(*parts_of(density.mixture), strict=True)
    written = [_expert(expert, book) for expert in experts]
    sample = {} if rows is None else {"rows": rows}
    return sample | {
        "version": VERSION,
        "title": title,
        "columns": [_column(variable, density, n) for n, variable in enumerate(density.schema)],
        "dictionaries": book.entries,
        "shares": np.array(shares),
        "experts": written,
    }


class _Book:
    """Dictionaries that are written once, though several experts use them."""

    def __init__(self) -> None:
        self.entries: list[list[dict[str, Any]]] = []
        self._known: dict[int, int] = {}

    def place(self, dictionary: Dictionary) -> int:
        if id(dictionary) not in self._known:
            self._known[id(dictionary)] = len(self.entries)
            self.entries.append([family.to_dict() for family in dictionary.families])
        return self._known[id(dictionary)]


def _column(variable: Variable, density: JointDensity, n: int) -> dict[str, Any]:
    found: dict[str, Any] = {"name": variable.name, "kind": str(variable.kind), "dtype": variable.dtype}
    if variable.gap_of is not None and variable.gap_of in density.names:
        found["gap"] = density.names.index(variable.gap_of)
    if variable.categories is not None:
        labels = [as_text(category) for category in variable.categories]
        # what Python calls them, where that is not the label
        values = list(variable.categories) if labels != list(variable.categories) else None
        return found | {"categories": labels, "values": values, "ordered": variable.ordered}
    cells = column_cells(density, n)
    return found | {"edges": cells.edges, "ends": list(cells.ends), "spikes": cells.spikes, "step": variable.step}


def column_cells(density: JointDensity, n: int) -> Cells:
    """Return the cells of the ``n``-th variable, a number."""
    variable, margin = density.schema.variables[n], density.mixture.margin(n)
    cells = cells_of(variable, margin)
    if cells.spikes.size or variable.kind == "continuous":  # spikes of the law, whether or not the schema names them
        cells = Cells(cells.edges, cells.ends, density.mixture.dictionary(n).spikes)
    return cells


# ---- experts ---------------------------------------------------------------------------------------------------------


def _expert(expert: Expert, book: _Book) -> dict[str, Any]:
    for kind, write in _WRITERS.items():
        if isinstance(expert, kind):
            return {"kind": expert.KIND, "weights": expert.weights, **write(expert, book)}
    raise InputError(f"The page can show products, blocks and trees; it cannot show {expert!r}.")


def _product(expert: ProductMixture, book: _Book) -> dict[str, Any]:
    _check_size(sum(b.size for b in expert.coefficients))
    return {
        "coefficients": [_short(b) for b in expert.coefficients],
        "dictionaries": [book.place(d) for d in expert.dictionaries],
    }


def _forest(expert: ForestMixture, book: _Book) -> dict[str, Any]:
    plain = [tree.to_dict() for tree in expert.trees]
    _check_size(sum(tree["tables"].size for tree in plain))
    return {
        "dictionaries": [book.place(d) for d in expert.dictionaries],
        "trees": [tree | {"tables": _short(tree["tables"])} for tree in plain],
    }


def _block(expert: BlockMixture, book: _Book) -> dict[str, Any]:
    block = expert.block
    _check_size(block.covariances.size + sum(b.size for b in expert.coefficients))
    rows, columns = np.tril_indices(block.n_coordinates)
    windowed = bool(block.has_window.any())
    return {
        "columns": list(expert.columns),
        "warps": [warp.to_dict() for warp in block.warps],
        "means": block.means,
        # the factors lose less by rounding than the covariances would
        "roots": np.linalg.cholesky(block.covariances)[:, rows, columns].astype(np.float32),
        "spikes": list(block.spikes),
        "spike_weights": list(block.spike_weights),
        "whole": list(block.whole),
        "low": block.low if windowed else None,
        "high": block.high if windowed else None,
        "log_inside": block.log_inside[0] if windowed else None,
        "coefficients": [_short(b) for b in expert.coefficients],
        "dictionaries": [book.place(d) for d in expert.dictionaries],
    }


_WRITERS: dict[type[Expert], Any] = {ProductMixture: _product, BlockMixture: _block, ForestMixture: _forest}


def _short(probabilities: FloatArray) -> FloatArray:
    """Return probabilities with seven digits, those below 1e-30 as zero."""
    return np.where(probabilities < 1e-30, 0.0, probabilities).astype(np.float32)


def _check_size(numbers: int) -> None:
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"The density has {numbers:,} numbers, too many for a page ({MOST_NUMBERS:,}). Fit fewer components, or "
            "explore a marginal of it."
        )
