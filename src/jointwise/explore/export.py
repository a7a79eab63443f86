"""A density as what the page computes with: columns with their cells, dictionaries of atoms, and experts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import InputError
from jointwise.explore.cells import Cells, DrawnLaw, MarginLaw, cells_of
from jointwise.joint import JointDensity
from jointwise.joint.block import BlockMixture
from jointwise.joint.expert import Expert
from jointwise.joint.forest import ForestMixture
from jointwise.joint.product import ProductMixture
from jointwise.joint.sum import parts_of
from jointwise.tables.variables import Kind, Variable, as_text

VERSION = 1
# Most numbers of a model on a page: its file would have some hundred megabytes.
MOST_NUMBERS = 1 << 26
# Numbers of a column's coefficients from which they are stored shorter, and the margin of an atom that is rare then.
LARGE, RARE = 1 << 20, 1e-3
# Draws that tell where a column lies, and its shape in a still picture.
N_DRAWN = 4096


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
    cells = all_cells(density)
    return sample | {
        "version": VERSION,
        "title": title,
        "columns": [_column(variable, density, cells[n]) for n, variable in enumerate(density.schema)],
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


def _column(variable: Variable, density: JointDensity, cells: Cells | None) -> dict[str, Any]:
    found: dict[str, Any] = {"name": variable.name, "kind": str(variable.kind), "dtype": variable.dtype}
    if variable.gap_of is not None and variable.gap_of in density.schema.names:
        found["gap"] = density.schema.index(variable.gap_of)
    if cells is not None:
        numbers = {"edges": cells.edges, "ends": list(cells.ends), "spikes": cells.spikes}
        return found | numbers | {"step": variable.step}
    categories = variable.categories or ()
    labels = [as_text(category) for category in categories]
    # what Python calls them, where that is not the label
    values = list(categories) if labels != list(categories) else None
    return found | {"categories": labels, "values": values, "ordered": variable.ordered}


def all_cells(density: JointDensity) -> list[Cells | None]:
    """Return the cells of each number; None for categories."""
    laws = drawn_laws(density) if is_windowed(density) else None
    found: list[Cells | None] = []
    for n, variable in enumerate(density.schema):
        if variable.categories is not None:
            found.append(None)
            continue
        cells = cells_of(variable, MarginLaw(density.mixture.margin(n)) if laws is None else laws[n])
        if variable.kind is Kind.CONTINUOUS:  # spikes of the law, whether or not the schema names them
            cells = replace(cells, spikes=density.mixture.dictionary(n).spikes)
        found.append(cells)
    return found


def is_windowed(density: JointDensity) -> bool:
    """Whether some expert is a Gaussian block inside windows, whose margins take seconds to find."""
    experts = [expert for expert, _ in parts_of(density.mixture)]
    return any(isinstance(expert, BlockMixture) and expert.block.has_window.any() for expert in experts)


def drawn_laws(density: JointDensity) -> list[DrawnLaw]:
    """Return the laws of all columns by draws, the same each time."""
    rows = density.mixture.sample(N_DRAWN, np.random.default_rng(0))
    return [DrawnLaw(column) for column in rows.T]


# ---- experts ---------------------------------------------------------------------------------------------------------


def _expert(expert: Expert, book: _Book) -> dict[str, Any]:
    for kind, write in _WRITERS.items():
        if isinstance(expert, kind):
            return {"kind": expert.KIND, "weights": expert.weights, **write(expert, book)}
    raise InputError(f"The page can show products, blocks and trees; it cannot show {expert!r}.")


def _product(expert: ProductMixture, book: _Book) -> dict[str, Any]:
    _check_size(sum(b.size for b in expert.coefficients))
    return {
        "coefficients": [_coefficients(b, expert.weights) for b in expert.coefficients],
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
        "coefficients": [_coefficients(b, expert.weights) for b in expert.coefficients],
        "dictionaries": [book.place(d) for d in expert.dictionaries],
    }


_WRITERS: dict[type[Expert], Any] = {ProductMixture: _product, BlockMixture: _block, ForestMixture: _forest}


def _short(probabilities: FloatArray) -> FloatArray:
    """Return probabilities with seven digits, those below 1e-30 as zero."""
    return np.where(probabilities < 1e-30, 0.0, probabilities).astype(np.float32)


def _coefficients(b: FloatArray, weights: FloatArray) -> FloatArray | dict[str, FloatArray]:
    """Return the coefficients of a column's atoms by components, (L, F); a large matrix as margins and ratios to them.

    Atoms of a large matrix are mostly categories that a component has not met: their coefficients are the margin times
    a number of the component. So ratios are alike, and written component by component they take little room. Those of
    atoms with a margin below 1e-3 keep four digits: their own probabilities are right to 1e-7, what is known of such a
    category counts to 6e-5 of itself.
    """
    if b.size < LARGE:
        return _short(b)
    margin = b @ weights
    ratios = np.divide(b, margin[:, None], out=np.zeros_like(b), where=margin[:, None] > 0).T
    return {"margin": margin, "ratios": np.where(margin < RARE, _rounded(ratios), _short(ratios))}


def _rounded(values: FloatArray) -> FloatArray:
    """Return numbers as float32 with 13 bits after the first, which leaves a relative error of 6e-5.

    >>> _rounded(np.array([1.0, 1 / 3])).tolist()
    [1.0, 0.333343505859375]
    """
    bits = _short(values).view(np.uint32)
    return ((bits + np.uint32(1 << 9)) & np.uint32(0xFFFFFC00)).view(np.float32)


def _check_size(numbers: int) -> None:
    if numbers > MOST_NUMBERS:
        raise InputError(
            f"The density has {numbers:,} numbers, too many for a page ({MOST_NUMBERS:,}). Fit fewer components, or "
            "explore a marginal of it."
        )
