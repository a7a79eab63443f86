"""What all pictures share: new Axes, colours, texts, and encoded rows of data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.exceptions import InputError, MissingDependencyError
from jointwise.joint import JointDensity
from jointwise.tables import encode, read_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

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


def colour_map() -> Colormap:
    """White to dark blue with evenly falling lightness, so that equal steps of a number are equal steps of colour.

    These are matplotlib's "Blues", shifted along the scale until their CIE lightness is linear.
    """
    from matplotlib import colormaps
    from matplotlib.colors import LinearSegmentedColormap

    blues = colormaps["Blues"](np.linspace(0, 1, 256))
    blues[0] = 1.0  # zero is white
    lightness = cie_lightness(blues[:, :3])
    even = np.interp(np.linspace(0, 1, 256), (lightness[0] - lightness) / np.ptp(lightness), np.arange(256.0))
    colours = np.column_stack([np.interp(even, np.arange(256), channel) for channel in blues.T])
    return LinearSegmentedColormap.from_list("even blues", colours)


def cie_lightness(rgb: FloatArray) -> FloatArray:
    """CIE lightness L*, 0 to 100, of sRGB colours of shape (n, 3)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ np.array([0.2126, 0.7152, 0.0722])
    return np.asarray(np.where(luminance > 0.008856, 116 * np.cbrt(luminance) - 16, 903.3 * luminance))


def text(words: object, longest: int = LONGEST_TEXT) -> str:
    r"""Words as text of a picture: shortened, and with dollar signs escaped, which would begin a formula.

    >>> text("price in $"), text("a" * 30)
    ('price in \\$', 'aaaaaaaaaaaaaaaaaaaaaaa…')
    """
    plain = str(words)
    short = plain if len(plain) <= longest else plain[: longest - 1] + "…"
    return short.replace("$", r"\$")


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
