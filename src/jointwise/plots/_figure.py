"""What all pictures share: new Axes, colours, texts, and encoded rows of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError, MissingDependencyError
from jointwise.joint import JointDensity
from jointwise.plots.texts import visible
from jointwise.tables import encode, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Colours of Okabe and Ito, which are distinct under every form of colour blindness.
MODEL, DATA_POINTS, ATOMS = "#0072B2", "#E69F00", "#56B4E9"
PALETTE = (MODEL, "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#8A6D3B")
DATA_BARS, FAINT = "#D0D0D0", "#B0B0B0"
LONGEST_TEXT = 24


def pyplot() -> Any:
    """Pyplot, or an error that says how to install matplotlib."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise MissingDependencyError(
            "Plots need matplotlib, which is not installed: pip install 'jointwise[plot]'"
        ) from error
    return plt


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """``ax``, or the Axes of a new figure of this size in inches, laid out so that all text is inside."""
    if ax is not None:
        return ax
    new: Axes = pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return new


def text(words: object, longest: int = LONGEST_TEXT) -> str:
    r"""Words as text of a picture: shortened, and with escapes for what is not visible and for dollars.

    A dollar sign would begin a formula.

    >>> text("price in $"), text("a" * 30)
    ('price in \\$', 'aaaaaaaaaaaaaaaaaaaaaaa…')
    """
    return visible(words, longest).replace("$", r"\$")


def remark(ax: Axes, words: str) -> None:
    """Write a remark above the axes, at the right."""
    ax.set_title(words, loc="right", fontsize="small", color="0.4")


def bare(ax: Axes) -> None:
    """Hide the two spines that have no scale."""
    ax.spines[["top", "right"]].set_visible(False)


def legend_beside(ax: Axes) -> None:
    """Put the legend to the right of the axes."""
    ax.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize="small", borderaxespad=0.0)


def check_density(density: object) -> JointDensity:
    """Refuse anything but a density, with a hint if it is an estimator."""
    if isinstance(density, JointDensity):
        return density
    hint = "; pass its `density_`" if hasattr(density, "density_") else ""
    raise InputError(f"A plot needs a JointDensity, got {type(density).__name__}{hint}.")


def encoded_columns(density: JointDensity, names: list[str], data: Any) -> FloatArray:
    """Columns of ``data`` as numbers, gaps as NaN; shape (n, len(names)).

    A table needs these columns only; an array must have all columns of the density.
    """
    table = read_table(data)
    if table.container == "numpy":
        return encode(table, density.schema)[:, [density.schema.index(name) for name in names]]
    return encode(table, density.schema.select(names))
