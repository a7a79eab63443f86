"""Figures of textures: a collage and maps of its classes, drawn patches beside real ones, filled gaps."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._typing import BoolArray, FloatArray
from jointwise.datasets.textures import CLASS_NAMES
from jointwise.experiments.page import save_figure
from jointwise.experiments.splits import SIDE, Collage, pixels

# One colour for each texture, distinct for any form of colour blindness.
COLOURS = ("#E69F00", "#8A4B2A", "#56B4E9")


def to_text(grey: FloatArray) -> str:
    """Return grey levels from 0 to 1 as a text that JSON can hold, one byte each."""
    return base64.b64encode(np.round(np.clip(grey, 0, 1) * 255).astype(np.uint8).tobytes()).decode()


def from_text(text: str) -> FloatArray:
    """Return the grey levels of a text, in one row.

    >>> from_text(to_text(np.array([[0.0, 0.2], [1.0, 2.0]])))
    array([0. , 0.2, 1. , 1. ])
    """
    return np.frombuffer(base64.b64decode(text), dtype=np.uint8) / 255


def draw_collage(collage: Collage, labels: Mapping[str, str], path: Path) -> str:
    """Write the figure of a collage, its truth and the classes found; return its Markdown.

    Parameters
    ----------
    collage : Collage
    labels : mapping of methods to the classes they found, a digit for each patch
    path : Path
    """
    found = {
        name: np.array([int(digit) for digit in digits]).reshape(collage.truth.shape) for name, digits in labels.items()
    }
    shares = {name: float(np.mean(classes == collage.truth)) for name, classes in found.items()}
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine
    from matplotlib.patches import Patch

    columns = 4
    rows = -(-(2 + len(found)) // columns)
    figure = Figure(figsize=(2.4 * columns, 2.8 * rows + 0.4), layout=ConstrainedLayoutEngine(h_pad=0.08))
    panels: Any = figure.subplots(rows, columns, squeeze=False).ravel()
    _picture(panels[0], pixels(collage.patches), "collage of test patches")
    maps = {"truth": collage.truth} | {f"{name}\n{shares[name]:.1%} right": found[name] for name in found}
    for ax, (title, classes) in zip(panels[1:], maps.items(), strict=False):
        by_pixel = np.kron(classes, np.ones((SIDE, SIDE), dtype=int))
        ax.imshow(by_pixel, cmap=ListedColormap(COLOURS), vmin=-0.5, vmax=2.5, interpolation="nearest")
        ax.set_title(title, fontsize=9)
    for ax in panels:
        ax.axis("off")
    handles = [Patch(color=colour, label=name) for name, colour in zip(CLASS_NAMES, COLOURS, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    save_figure(figure, path)
    correct = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    return (
        f"![A collage of textures, the truth of each pixel, and the classes found]({path.name})\n\n"
        "The collage shows patches of one test image of each texture, from the split at the middle scale. Each patch "
        f"of 5 x 5 pixels is classified by itself. Correct patches: {correct}."
    )


def draw_patches(real: FloatArray, drawn: FloatArray, path: Path) -> None:
    """Write the figure of real patches beside drawn ones, a row for each texture.

    Parameters
    ----------
    real, drawn : array of shape (n_textures, n_patches, 25)
    path : Path
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 1.5 * len(real)), layout="constrained")
    panels: Any = figure.subplots(len(real), 2, squeeze=False)
    for texture, row in enumerate(panels):
        for ax, patches, title in zip(row, (real, drawn), ("real", "drawn"), strict=True):
            _picture(ax, spaced(patches[texture]), f"{CLASS_NAMES[texture]}, {title}")
            ax.axis("off")
    save_figure(figure, path)


def spaced(patches: FloatArray, columns: int = 12) -> FloatArray:
    """Put patches in rows of `columns` with white lines between; shape (n_pixels_high, n_pixels_wide)."""
    rows = -(-len(patches) // columns)
    page = np.ones((rows * (SIDE + 1) - 1, columns * (SIDE + 1) - 1))
    for number, patch in enumerate(patches):
        row, column = (place * (SIDE + 1) for place in divmod(number, columns))
        page[row : row + SIDE, column : column + SIDE] = patch.reshape(SIDE, SIDE)
    return page


def draw_reconstruction(before: FloatArray, hidden: BoolArray, after: Mapping[str, FloatArray], path: Path) -> None:
    """Write the figure of images before, with hidden pixels, and filled by each method, a row for each texture.

    Parameters
    ----------
    before : array of shape (n_textures, height, width, 25)
    hidden : array of shape (25,)
        Which pixels of a patch are hidden.
    after : mapping of methods to arrays like ``before``
    path : Path
    """
    from matplotlib.figure import Figure

    columns = {"before": before, "hidden": np.where(hidden, np.nan, before)} | dict(after)
    figure = Figure(figsize=(2.4 * len(columns), 2.55 * len(before)), layout="constrained")
    panels: Any = figure.subplots(len(before), len(columns), squeeze=False)
    for texture, row in enumerate(panels):
        for ax, (title, images) in zip(row, columns.items(), strict=True):
            _picture(ax, pixels(images[texture]), title if texture == 0 else "")
            ax.set(xticks=[], yticks=[])
            ax.set_facecolor("#E69F00")  # seen through hidden pixels
        row[0].set_ylabel(CLASS_NAMES[texture])
    save_figure(figure, path)


def _picture(ax: Any, grey: FloatArray, title: str) -> None:
    ax.imshow(grey, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_title(title, fontsize=9)
