"""How rows and images are split."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jointwise.experiments import splits
from jointwise.experiments.splits import collage, kth_split, patches, pixels, stratified


def test_rows_are_split_60_20_20_stratified_by_class():
    X = np.arange(200.0)[:, None]
    y = np.repeat([0, 1], [50, 150])
    split = stratified(X, y, seed=3)
    parts = (split.train, split.validation, split.test)
    assert [len(part.X) for part in parts] == [120, 40, 40]
    assert [part.y.mean() for part in parts] == [0.75] * 3
    np.testing.assert_array_equal(np.sort(np.concatenate([part.X for part in parts]), axis=0), X)
    assert all(np.array_equal(part.y, y[part.X[:, 0].astype(int)]) for part in parts)
    assert not np.array_equal(split.test.X, stratified(X, y, seed=4).test.X)


@given(st.integers(5, 40), st.integers(5, 40), st.integers(0, 100))
def test_patches_are_blocks_of_the_image(height, width, seed):
    image = np.random.default_rng(seed).integers(0, 256, (height, width)).astype(np.uint8)
    cut = patches(image)
    for i in range(height // 5):
        for j in range(width // 5):
            block = image[5 * i : 5 * i + 5, 5 * j : 5 * j + 5]
            np.testing.assert_array_equal(cut[i, j], block.ravel() / 255)
    np.testing.assert_array_equal(pixels(cut), image[: height // 5 * 5, : width // 5 * 5] / 255)


def test_a_collage_shows_each_texture_where_the_truth_says():
    levels = [np.full((height, 40, 25), level) for level, height in enumerate((40, 25, 60))]
    made = collage(levels)
    assert made.patches.shape == (40, 40, 25)
    np.testing.assert_array_equal(made.patches[:, :, 0], made.truth)
    assert set(np.unique(made.truth)) == {0, 1, 2}


def toy_images():
    """Return nine images of each texture at two scales, with grey levels that encode texture, scale and number."""
    images, target, scales = [], [], []
    for texture in range(3):
        for scale in (1, 2):
            for number in range(9):
                height = 200 if texture != 1 else 100 + number % 5  # some have another size
                images.append(np.full((height, 200), 80 * texture + 10 * scale + number, dtype=np.uint8))
                target.append(texture)
                scales.append(scale)
    return images, np.array(target), np.array(scales)


def test_each_image_of_one_scale_is_in_one_part():
    split = kth_split(*toy_images(), seed=1, quick=False)
    levels = [
        set(np.unique(np.round(part.X * 255).astype(int))) for part in (split.train, split.validation, split.test)
    ]
    assert [len(part) for part in levels] == [6, 3, 6]
    assert not levels[0] & levels[1]
    assert not levels[0] & levels[2]
    assert all(level % 80 // 10 == 2 for part in levels for level in part)  # scale 2 for seed 1
    np.testing.assert_array_equal(split.train.y, np.round(split.train.X[:, 0] * 255).astype(int) // 80)
    assert split.train.X.shape == (2 * 1600 * 2 + 2 * 20 * 40, 25)
    quick = kth_split(*toy_images(), seed=1, quick=True)
    assert len(quick.train.X) == len(split.train.X) // splits.QUICK_STRIDE
    assert len(quick.test.X) == len(split.test.X)


def test_the_dictionaries_of_the_paper():
    X = np.column_stack([np.linspace(10.6, 21.2, 50), np.linspace(0.8, 0.92, 50)])
    area, compactness = splits.seeds_dictionaries(X).values()
    np.testing.assert_allclose(area.mean()[:7], [10, 12, 14, 16, 18, 20, 22])
    np.testing.assert_allclose(area.var()[:7], 1)
    np.testing.assert_allclose(area.mean()[7:], [13, 19])
    assert compactness.n_atoms == 9
    np.testing.assert_allclose(np.sqrt(compactness.var()[0]), 0.12 / 12)
    (wifi,) = splits.wifi_dictionaries(np.array([[-90], [-36]])).values()
    np.testing.assert_allclose(wifi.mean(), np.arange(-90, -36, 4))
    np.testing.assert_allclose(wifi.var(), 4)
    kth = kth_split(*toy_images(), seed=0, quick=True).dictionaries["x24"]
    assert kth.n_atoms == 26
    assert kth.var()[0] == pytest.approx(4e-4)
