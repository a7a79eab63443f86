"""Three textures of the KTH-TIPS database, whose patches the paper classifies."""

from __future__ import annotations

import io
import re
import struct
from importlib.resources import files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from jointwise._typing import AnyArray
from jointwise.datasets._files import Home, Source, optional, read_files
from jointwise.exceptions import DatasetError

CLASSES = ("orange_peel", "brown_bread", "linen")
CLASS_NAMES = tuple(name.replace("_", " ") for name in CLASSES)
# The images are nominally 200 x 200; those of the far scales are up to 253 wide.
MOST_PIXELS = 512
DESCRIPTION = (
    "KTH-TIPS, greyscale: 81 images each of orange peel, brown bread and linen, at nine scales and nine poses and "
    "lights. M. Fritz, E. Hayman, B. Caputo, J.-O. Eklundh (2004), KTH Stockholm, "
    "https://www.csc.kth.se/cvap/databases/kth-tips/; research data without a stated licence."
)


def kth_tips_source() -> Source:
    """Return the address of the archive, and the sha256 of each of the 243 images."""
    lines = files("jointwise.datasets").joinpath("kth_tips.sha256").read_text(encoding="ascii").splitlines()
    hashes = {name: sha256 for sha256, name in (line.split() for line in lines)}
    url = "https://www.csc.kth.se/cvap/databases/kth-tips/kth_tips_grey_200x200.tar"
    return Source("kth_tips", url, hashes, most_bytes=2**26)


def load_kth_tips(*, return_X_y: bool = False, data_home: Home = None) -> Any:
    """KTH-TIPS: 243 grey images of three textures. Most are 200 x 200; those of brown bread from afar are not.

    Parameters
    ----------
    return_X_y : bool
        Return only ``(images, target)``.
    data_home : path, optional
        As in :func:`load_banknote`.

    Returns
    -------
    Bunch
        With ``images`` (a list of arrays of bytes), ``target`` (codes of the textures), ``target_names``, ``scales``
        (1, near, to 9, far) and ``DESCR``.

    Examples
    --------
    >>> load_kth_tips().images[0].shape
    (200, 200)
    """
    contents = read_files(kth_tips_source(), data_home)
    names = sorted(contents, key=lambda name: (CLASSES.index(_texture(name)), name))
    images = [read_image(name, contents[name]) for name in names]
    target = np.array([CLASSES.index(_texture(name)) for name in names])
    if return_X_y:
        return images, target
    return Bunch(
        images=images,
        target=target,
        target_names=np.array(CLASS_NAMES),
        scales=np.array([_scale(name) for name in names]),
        DESCR=DESCRIPTION,
    )


def read_image(name: str, contents: bytes) -> AnyArray:
    """Return the grey levels of an image as bytes; shape (height, width)."""
    pillow = optional("PIL.Image", "Reading the images of KTH-TIPS needs the package Pillow.", "plot")
    try:
        with pillow.open(io.BytesIO(contents)) as image:
            mode, size = image.mode, image.size
            if mode == "L" and max(size) <= MOST_PIXELS:
                return np.array(image)
    except (OSError, SyntaxError, ValueError, EOFError, struct.error) as error:  # what Pillow raises for a damaged file
        raise DatasetError(f"The file {name!r} is not a readable image: {error}.") from error
    raise DatasetError(
        f"The image {name!r} must be grey and no larger than {MOST_PIXELS} pixels a side; it has mode {mode!r} and "
        f"size {size}."
    )


def _texture(name: str) -> str:
    return name.split("/")[1]


def _scale(name: str) -> int:
    found = re.search(r"scale_(\d+)_", name)
    assert found is not None  # every name of the list has one
    return int(found.group(1))
