"""
Textures filled in
==================

A picture is a table: each small patch is a row, each of its pixels a column. A density learned from patches of one
half of a picture fills the holes in the other half, each pixel given those around it.
"""

# %%
# Patches
# -------
# A part of a photograph that comes with scikit-learn, in grey. The left half is for learning.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image
from sklearn.feature_extraction.image import extract_patches_2d

from jointwise import GaussianBlocks

picture = load_sample_image("china.jpg")[150:310, 60:380].mean(axis=2) / 255
left, right = picture[:, :160], picture[:, 160:]
side = 5
patches = extract_patches_2d(left, (side, side), max_patches=2500, random_state=0).reshape(-1, side**2)
print(patches.shape)

# %%
# Neighbouring pixels are strongly correlated, so the density is a mixture of Gaussians over all 25 of them. Its twelve
# components stand for edges in several directions and for smooth ground.
density = GaussianBlocks("none", n_components=12, random_state=0).fit(patches).density_

# %%
# Holes
# -----
# The inner 3 x 3 pixels of every patch of the right half are hidden. A best guess fills each with its mean given the
# 16 pixels around; a draw takes one of the fillings that are likely.
hidden = np.pad(np.ones((3, 3), dtype=bool), 1).ravel()


def to_rows(image):
    """Cut an image into patches side by side, a row each."""
    height, width = image.shape
    return image.reshape(height // side, side, width // side, side).swapaxes(1, 2).reshape(-1, side**2)


def to_image(rows):
    """Put patches side by side again."""
    height, width = right.shape
    return rows.reshape(height // side, width // side, side, side).swapaxes(1, 2).reshape(height, width)


truth = to_rows(right)
holes = np.where(hidden, np.nan, truth)
guess = density.impute(holes)
draw = density.sample_given(holes, 1, rng=0)

# %%
# The error of a hidden pixel, beside those of two simple fillings: the mean of the 16 pixels around, and the mean of
# all.
around = np.where(hidden, np.nanmean(holes, axis=1, keepdims=True), truth)
mean = np.where(hidden, np.nanmean(holes), truth)
for name, filled in [("best guess", guess), ("mean of the pixels around", around), ("mean of all", mean)]:
    print(f"{name:26s} {np.sqrt(np.mean((filled - truth)[:, hidden] ** 2)):.3f}")

# %%
# Nine of the 25 pixels of each patch are hidden, 36% of the picture. A guess is smooth where the density is unsure; a
# draw has the grain of the rest.
figure, axes = plt.subplots(1, 4, figsize=(12, 3.4), layout="constrained")
shown = {"truth": truth, "hidden": holes, "best guess": guess, "one draw": draw}
for ax, (name, rows) in zip(axes, shown.items(), strict=True):
    ax.imshow(np.ma.masked_invalid(to_image(rows)), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set(title=name, xticks=[], yticks=[], facecolor="#d9903d")
plt.show()
