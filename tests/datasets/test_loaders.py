"""The loaders: on small stand-ins everywhere, on the published files where they are on disk."""

import hashlib
import io
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from jointwise.datasets import load_banknote, load_kth_tips, load_raisin, load_seeds, load_wifi, textures, uci
from jointwise.datasets._files import Source
from jointwise.exceptions import DatasetError, MissingDependencyError

needs_data = pytest.mark.skipif("JOINTWISE_DATA" not in os.environ, reason="JOINTWISE_DATA names no folder of data")


def on_disk(folder, table, contents, **changes):
    """A table whose file, with other contents, is in the folder."""
    (name,) = table.source.hashes
    place = folder / table.source.folder
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_bytes(contents)
    source = replace(table.source, hashes={name: hashlib.sha256(contents).hexdigest()})
    return replace(table, source=source, **changes)


def test_a_loader_gives_a_bunch_or_a_pair(monkeypatch, tmp_path):
    table = on_disk(tmp_path, uci.SEEDS, b"1 2\t\t3 4 5 6 7 1\r\n\n7 6 5 4 3 2 1 3", n_rows=2)
    monkeypatch.setattr(uci, "SEEDS", table)
    seeds = load_seeds(data_home=tmp_path)
    np.testing.assert_array_equal(seeds.data, [[1, 2, 3, 4, 5, 6, 7], [7, 6, 5, 4, 3, 2, 1]])
    np.testing.assert_array_equal(seeds.target, [0, 2])
    assert list(seeds.target_names) == ["Kama", "Rosa", "Canadian"]
    assert len(seeds.feature_names) == 7
    data, target = load_seeds(return_X_y=True, data_home=tmp_path)
    np.testing.assert_array_equal(data, seeds.data)
    np.testing.assert_array_equal(target, seeds.target)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "must have 2 rows of 8 cells; it has 0"),
        (b"@data\n1,2,3,4,5,6,7,Besni\n1,2,3\n", r"2 of \[3, 8\]"),
        (b"1,2,3,4,5,6,7,Besni\n" * 2, "no line '@data'"),
        (b"@data\n1,2,3,4,5,6,x,Besni\n1,2,3,4,5,6,7,Besni\n", "could not convert"),
        (b"@DATA\n1,2,3,4,5,6,7,Sultana\n1,2,3,4,5,6,7,Besni\n", "'Sultana'"),
    ],
)
def test_a_file_of_another_shape_is_refused(contents, message):
    with pytest.raises(DatasetError, match=message):
        uci.parse(replace(uci.RAISIN, n_rows=2, header_end="@data" if contents else None), "file", contents)


def png(array):
    pillow = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pillow.fromarray(array).save(file, "png")
    return file.getvalue()


def texture_files(folder):
    """Two images of each texture, of unequal size, and the source that knows them."""
    hashes = {}
    for texture in textures.CLASSES:
        for scale in (1, 2):
            name = f"KTH_TIPS/{texture}/1-scale_{scale}_im_1_grey.png"
            contents = png(np.full((20 + scale, 20), 100, dtype=np.uint8))
            path = folder / "kth_tips" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)
            hashes[name] = hashlib.sha256(contents).hexdigest()
    return Source("kth_tips", "http://127.0.0.1:1/kth.tar", hashes)


def test_textures_keep_their_sizes(monkeypatch, tmp_path):
    source = texture_files(tmp_path)
    monkeypatch.setattr(textures, "kth_tips_source", lambda: source)
    kth = load_kth_tips(data_home=tmp_path)
    assert [image.shape for image in kth.images] == [(21, 20), (22, 20)] * 3
    assert all(image.dtype == np.uint8 for image in kth.images)
    np.testing.assert_array_equal(kth.target, [0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(kth.scales, [1, 2] * 3)
    images, target = load_kth_tips(return_X_y=True, data_home=tmp_path)
    assert (len(images), len(target)) == (6, 6)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((20, 20, 3), dtype=np.uint8), "must be grey"),
        (np.zeros((20, 600), dtype=np.uint8), "no larger than 512"),
    ],
)
def test_an_image_of_another_shape_is_refused(array, message):
    with pytest.raises(DatasetError, match=message):
        textures.read_image("x.png", png(array))


@pytest.mark.parametrize("damage", [lambda b: b"no image", lambda b: b[:50], lambda b: b[:60] + b"0" * 9 + b[69:]])
def test_a_damaged_image_is_refused(damage):
    noise = np.random.default_rng(0).integers(0, 255, (20, 20)).astype(np.uint8)
    with pytest.raises(DatasetError, match="not an image that can be read"):
        textures.read_image("x.png", damage(png(noise)))


def test_without_pillow_it_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(MissingDependencyError, match=r"Pillow.*pip install 'jointwise\[plot\]'"):
        textures.read_image("x.png", b"")


def test_the_list_of_textures_is_whole():
    source = textures.kth_tips_source()
    assert len(source.hashes) == 243
    assert {textures._texture(name) for name in source.hashes} == set(textures.CLASSES)
    assert all(len(sha256) == 64 for sha256 in source.hashes.values())


@needs_data
@pytest.mark.parametrize(
    ("load", "shape", "counts", "kind"),
    [
        (load_banknote, (1372, 4), [762, 610], "f"),
        (load_wifi, (2000, 7), [500] * 4, "i"),
        (load_raisin, (900, 7), [450] * 2, "f"),
        (load_seeds, (210, 7), [70] * 3, "f"),
    ],
)
def test_the_published_tables(load, shape, counts, kind):
    bunch = load()
    assert bunch.data.shape == shape
    assert bunch.data.dtype.kind == kind
    assert len(bunch.feature_names) == shape[1]
    np.testing.assert_array_equal(np.bincount(bunch.target), counts)


@needs_data
def test_the_published_textures():
    kth = load_kth_tips()
    np.testing.assert_array_equal(np.bincount(kth.target), [81] * 3)
    odd = [image.shape != (200, 200) for image in kth.images]
    assert sum(odd) == 36
    assert set(kth.target[odd]) == {1}
    assert np.round(np.mean([image.mean() for image in kth.images[:81]]), 1) == 158.5
