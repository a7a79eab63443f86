"""Training, validation and test rows of the five data sets of section IV-B."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from jointwise._typing import AnyArray, FloatArray, IntArray
from jointwise.datasets import load_banknote, load_kth_tips, load_raisin, load_seeds, load_wifi
from jointwise.dictionary import Dictionary

TEXTURES = "KTH-TIPS"
# Seed of the split of textures shown in figures: it has the middle one of the nine scales.
SHOWN_TEXTURES = 4
# Pixels along the side of a patch: a row has 25 features and a class.
SIDE = 5
# Images of each texture; the others are not used.
TRAINING_IMAGES, VALIDATION_IMAGES, TEST_IMAGES = 2, 1, 2
# Distances of the camera in KTH-TIPS; the images of one split have the same.
N_SCALES = 9
# A quick run uses one in this many patches of a training image.
QUICK_STRIDE = 8
# Patches along the side of the collage, and along the side of its squares of one texture.
COLLAGE, SQUARE = 40, 10


class Labelled(NamedTuple):
    """Features of shape (n, n_features) and class codes of shape (n,)."""

    X: AnyArray
    y: IntArray


class Collage(NamedTuple):
    """A mosaic of test patches, of shape (height, width, 25), and the texture of each, of shape (height, width)."""

    patches: FloatArray
    truth: IntArray


@dataclass(frozen=True)
class Split:
    """Training, validation and test rows of a data set."""

    train: Labelled
    validation: Labelled
    test: Labelled
    dictionaries: Mapping[str, Dictionary] = field(default_factory=dict)  # the paper's, if it prints any, by feature
    images: Sequence[FloatArray] = ()  # one test image of each texture as patches, (height, width, 25); none for tables


# ---- tables --------------------------------------------------------------------------------------------------------


def stratified(X: AnyArray, y: IntArray, seed: int) -> Split:
    """Split rows 60/20/20, stratified by class."""
    X_rest, X_test, y_rest, y_test = train_test_split(X, y, test_size=0.2, stratify=y, random_state=seed)
    parts = train_test_split(X_rest, y_rest, test_size=0.25, stratify=y_rest, random_state=seed)
    X_train, X_validation, y_train, y_validation = parts
    return Split(Labelled(X_train, y_train), Labelled(X_validation, y_validation), Labelled(X_test, y_test))


def seeds_dictionaries(X: FloatArray) -> dict[str, Dictionary]:
    """Return Gaussians at 10, 12, ..., 22 with standard deviation 1 and two uniforms, as printed for the area.

    The paper prints none for the other features. They get the same on the range of their training rows: seven Gaussians
    with a standard deviation of half their distance, and a uniform for each half of the range.
    """
    ranges = [(10.0, 22.0), *zip(X[:, 1:].min(axis=0), X[:, 1:].max(axis=0), strict=True)]
    return {
        f"x{n}": Dictionary.grid("gaussian", low, high, n=7, scale=(high - low) / 12)
        + Dictionary.uniforms([low, (low + high) / 2, high])
        for n, (low, high) in enumerate(ranges)
    }


def wifi_dictionaries(X: FloatArray) -> dict[str, Dictionary]:
    """Return Gaussians 4 apart with variance 4, as printed, from the least to the greatest value of each feature."""
    ranges = zip(X.min(axis=0), X.max(axis=0), strict=True)
    return {f"x{n}": Dictionary.grid("gaussian", low, high, step=4, scale=2) for n, (low, high) in enumerate(ranges)}


def _table(
    load: Callable[..., tuple[AnyArray, IntArray]],
    dictionaries: Callable[[FloatArray], dict[str, Dictionary]] | None,
    seed: int,
    *,
    quick: bool,
) -> Split:
    del quick  # the tables are small
    split = stratified(*load(return_X_y=True), seed)
    return split if dictionaries is None else replace(split, dictionaries=dictionaries(split.train.X))


# ---- textures ------------------------------------------------------------------------------------------------------


def patches(image: AnyArray) -> FloatArray:
    """Cut an image into 5 x 5 patches side by side, grey levels scaled to [0, 1]; shape (height, width, 25).

    Rows and columns of pixels left over at the far edges are dropped, so images may have any size.

    >>> patches(np.full((12, 17), 255, dtype=np.uint8)).shape
    (2, 3, 25)
    """
    height, width = (side // SIDE for side in image.shape)
    whole = image[: height * SIDE, : width * SIDE] / 255
    return np.asarray(whole.reshape(height, SIDE, width, SIDE).swapaxes(1, 2).reshape(height, width, SIDE**2))


def pixels(patched: FloatArray) -> FloatArray:
    """Put patches side by side again, the inverse of :func:`patches`; shape (5 height, 5 width)."""
    height, width, _ = patched.shape
    return np.asarray(patched.reshape(height, width, SIDE, SIDE).swapaxes(1, 2).reshape(height * SIDE, width * SIDE))


def collage(images: Sequence[FloatArray]) -> Collage:
    """Return a checkerboard of squares of the textures, from one image (as patches) of each.

    Each square is cut from its image at the square's own place; an image that is too small is repeated.
    """
    row, column = np.mgrid[:COLLAGE, :COLLAGE]
    truth = (row // SQUARE + column // SQUARE) % len(images)
    covering = np.stack([image[row % image.shape[0], column % image.shape[1]] for image in images])
    return Collage(covering[truth, row, column], truth)


def kth_split(images: Sequence[AnyArray], target: IntArray, scales: IntArray, seed: int, *, quick: bool) -> Split:
    """Split images of one scale at random, and cut them into patches."""
    rng = np.random.default_rng(seed)
    scale = 1 + seed % N_SCALES
    numbers = np.cumsum([TRAINING_IMAGES, VALIDATION_IMAGES, TEST_IMAGES])
    parts: list[list[tuple[int, FloatArray]]] = [[], [], []]
    for texture in range(int(target.max()) + 1):
        chosen = rng.permutation(np.flatnonzero((target == texture) & (scales == scale)))[: numbers[-1]]
        for part, members in zip(parts, np.split(chosen, numbers[:-1]), strict=True):
            part += [(texture, patches(images[member])) for member in members]
    train, validation, test = (_rows(part, QUICK_STRIDE if quick and part is parts[0] else 1) for part in parts)
    grid = Dictionary.grid("gaussian", 0, 1, step=0.04, scale=0.02)
    first = [next(image for texture, image in parts[2] if texture == wanted) for wanted in np.unique(target)]
    return Split(train, validation, test, {f"x{n}": grid for n in range(SIDE**2)}, first)


def _rows(part: Sequence[tuple[int, FloatArray]], stride: int) -> Labelled:
    """Return the patches of images of known texture as rows, one in `stride`."""
    flat = [image.reshape(-1, SIDE**2)[::stride] for _, image in part]
    return Labelled(np.concatenate(flat), np.repeat([texture for texture, _ in part], [len(image) for image in flat]))


def _kth(seed: int, *, quick: bool) -> Split:
    kth = load_kth_tips()
    return kth_split(kth.images, kth.target, kth.scales, seed, quick=quick)


SPLITS: dict[str, Callable[..., Split]] = {
    "Banknote": partial(_table, load_banknote, None),
    "Wifi": partial(_table, load_wifi, wifi_dictionaries),
    "Raisin": partial(_table, load_raisin, None),
    "Seeds": partial(_table, load_seeds, seeds_dictionaries),
    TEXTURES: _kth,
}
# The data sets that are tables of numbers, and those of a quick run.
TABLES = tuple(name for name in SPLITS if name != TEXTURES)
QUICK_TABLES = ("Banknote", "Seeds")
