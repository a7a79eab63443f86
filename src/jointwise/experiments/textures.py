"""Pictures of textures: a collage beside the maps of its classes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._typing import AnyArray, FloatArray
from jointwise.datasets.textures import CLASSES
from jointwise.experiments.splits import SIDE, Collage, pixels

# One colour for each texture, told apart with any form of colour blindness.
COLOURS = ("#E69F00", "#8A4B2A", "#56B4E9")


def draw_collage(collage: Collage, labels: Mapping[str, str], path: Path) -> str:
    """Write the figure of a collage, its truth and the classes found, and return its Markdown.

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
    from matplotlib.patches import Patch

    columns = 4
    rows = -(-(2 + len(found)) // columns)
    figure = Figure(figsize=(2.4 * columns, 2.8 * rows + 0.4), layout="constrained")
    panels: Any = figure.subplots(rows, columns, squeeze=False).ravel()
    _picture(panels[0], pixels(collage.patches), "collage of test patches")
    maps = {"truth": collage.truth} | {f"{name}\n{shares[name]:.1%} right": found[name] for name in found}
    for ax, (title, classes) in zip(panels[1:], maps.items(), strict=False):
        by_pixel = np.kron(classes, np.ones((SIDE, SIDE), dtype=int))
        ax.imshow(by_pixel, cmap=ListedColormap(COLOURS), vmin=-0.5, vmax=2.5, interpolation="nearest")
        ax.set_title(title, fontsize=9)
    for ax in panels:
        ax.axis("off")
    names = [name.replace("_", " ") for name in CLASSES]
    handles = [Patch(color=colour, label=name) for colour, name in zip(COLOURS, names, strict=True)]
    figure.legend(handles=handles, loc="outside lower center", ncols=3, frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
    told = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    return (
        f"![A collage of textures, the truth of each pixel, and the classes found]({path.name})\n\n"
        "The collage is made of patches of one test image of each texture, of the split at the middle scale; each "
        f"patch of 5 x 5 pixels is classified by itself. Patches that are right: {told}."
    )


def _picture(ax: Any, grey: FloatArray | AnyArray, title: str) -> None:
    ax.imshow(grey, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set_title(title, fontsize=9)
