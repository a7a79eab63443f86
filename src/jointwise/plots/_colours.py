"""Colours of heat maps: even steps of lightness, on a scale that also shows densities with narrow peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from jointwise._typing import FloatArray

if TYPE_CHECKING:
    from matplotlib.colors import Colormap, Normalize

# Smallest power of a density that sets its colour: with less, even the far tails would be dark.
LEAST_POWER = 0.3
# Powers above this are taken as one, so that equal steps of density are equal steps of colour.
NEARLY_ONE = 0.75


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


def colour_scale(heights: FloatArray, areas: FloatArray) -> Normalize:
    """Scale of colours for the mean densities of cells: a power of them, so that half of the mass is dark.

    Half of the probability lies in cells with at least the density h. With the largest density H, colour is
    (density / H)^g, where g = log(1/2) / log(h / H): so h has the middle colour. A bell curve of two variables has
    g = 1, and so have all flatter ones; a narrow peak, which would leave the rest white, has less.

    Parameters
    ----------
    heights : array of shape (K, L)
    areas : array of shape (K, L)
        What turns heights into probabilities.
    """
    from matplotlib.colors import Normalize, PowerNorm

    top = float(heights.max())
    power = scale_power(heights, areas)
    return Normalize(0.0, top or 1.0) if power == 1 else PowerNorm(power, 0.0, top)


def scale_power(heights: FloatArray, areas: FloatArray) -> float:
    """Power g of `colour_scale`.

    >>> scale_power(np.ones((1, 4)), np.ones((1, 4)))
    1.0
    >>> round(scale_power(np.array([[100.0, 1.0, 1.0]]), np.array([[0.001, 1.0, 1.0]])), 3)
    0.3
    """
    order = np.argsort(-heights, axis=None)
    height, mass = heights.ravel()[order], (heights * areas).ravel()[order]
    if not mass.sum() > 0:
        return 1.0
    middle = float(height[np.searchsorted(np.cumsum(mass), mass.sum() / 2)] / height[0])
    power = np.log(0.5) / np.log(middle) if 0 < middle < 1 else 1.0
    return 1.0 if power > NEARLY_ONE else max(float(power), LEAST_POWER)


def colour_bar(mesh: Any, ax: Any, label: str) -> None:
    """Draw the scale of a heat map beside it; a label says if its steps are uneven."""
    from matplotlib.colors import PowerNorm
    from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

    if not isinstance(mesh.norm, PowerNorm):
        ax.figure.colorbar(mesh, ax=ax, label=label, pad=0.02).outline.set_visible(False)
        return
    bar = ax.figure.colorbar(mesh, ax=ax, label=f"{label} (uneven scale)", pad=0.02)
    ticks = (float(mesh.norm.vmax or 1.0) * np.linspace(0, 1, 6) ** (1 / mesh.norm.gamma)).tolist()
    bar.ax.yaxis.set_major_locator(FixedLocator(ticks))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(FixedFormatter([f"{tick:.2g}" for tick in ticks]))
    bar.outline.set_visible(False)
