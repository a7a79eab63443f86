"""The loaders, on small stand-ins, and on the published files if they are on disk."""

import hashlib
import io
import os
import sys
from dataclasses import replace

import numpy as np
import pytest

from jointwise import JUPAD
from jointwise.datasets import (
    fetch_adult,
    fetch_penguins,
    load_banknote,
    load_kth_tips,
    load_raisin,
    load_seeds,
    load_wifi,
    mixed,
    textures,
    uci,
)
from jointwise.datasets._files import Source
from jointwise.exceptions import DatasetError, InputError, MissingDependencyError

needs_data = pytest.mark.skipif("JOINTWISE_DATA" not in os.environ, reason="JOINTWISE_DATA is not set")


def on_disk(folder, table, *contents, **changes):
    """Return a table whose files, with other contents, are in the folder."""
    place = folder / table.source.folder
    place.mkdir(parents=True, exist_ok=True)
    files = dict(zip(table.source.hashes, contents, strict=True))
    for name, each in files.items():
        (place / name).write_bytes(each)
    source = replace(table.source, hashes={name: hashlib.sha256(each).hexdigest() for name, each in files.items()})
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


ADULT_ROWS = (
    b"39, State-gov, 77516, Bachelors, 13, Never-married, ?, Husband, White, Male, 2174, 0, 40, Hong, >50K\n\n",
    (
        b"|1x3 comment\n25, ?, 226802, 11th, 7, Divorced, Sales, Wife, Black, Female, 0, 0, 40, ?, <=50K.\n"
        b"38, Private, 8, 9th, 5, Divorced, Sales, Wife, Black, Female, 0, 9, 1, Cuba, >50K.\n"
    ),
)


@pytest.fixture
def small_adult(monkeypatch, tmp_path):
    table = on_disk(tmp_path, mixed.ADULT, *ADULT_ROWS, n_rows={"adult.data": 1, "adult.test": 2})
    monkeypatch.setattr(mixed, "ADULT", table)
    return tmp_path


def test_adult_is_a_table_of_columns_by_their_published_names(small_adult):
    adult = fetch_adult(data_home=small_adult)
    assert list(adult.table) == [*adult.feature_names, "income"]
    assert list(adult.data) == adult.feature_names
    assert adult.table["capital-gain"].dtype == np.int64
    np.testing.assert_array_equal(adult.table["capital-gain"], [2174, 0, 0])
    assert adult.table["workclass"].tolist() == ["State-gov", None, "Private"]
    assert adult.table["income"].tolist() == [">50K", "<=50K", ">50K"]
    np.testing.assert_array_equal(adult.target, [1, 0, 1])
    assert adult.target_names.tolist() == ["<=50K", ">50K"]


@pytest.mark.parametrize(("subset", "ages"), [("train", [39]), ("test", [25, 38]), ("all", [39, 25, 38])])
def test_adult_has_two_published_parts(small_adult, subset, ages):
    data, target = fetch_adult(subset=subset, return_X_y=True, data_home=small_adult)
    assert data["age"].tolist() == ages
    assert len(target) == len(ages)
    assert "income" not in data
    with pytest.raises(InputError, match=r"`subset` must be one of 'train', 'test', 'all'; got 'valid'"):
        fetch_adult(subset="valid", data_home=small_adult)


def test_penguins_have_gaps_in_numbers_and_text(monkeypatch, tmp_path):
    text = b"species,...,sex\nAdelie,Dream,39.1,18,181,3750,MALE\nGentoo,Biscoe,,,,,\n"
    monkeypatch.setattr(mixed, "PENGUINS", on_disk(tmp_path, mixed.PENGUINS, text, n_rows={"penguins.csv": 2}))
    table = fetch_penguins(data_home=tmp_path).table
    np.testing.assert_array_equal(table["bill_depth_mm"], [18.0, np.nan])
    np.testing.assert_array_equal(table["body_mass_g"], [3750.0, np.nan])
    assert table["sex"].tolist() == ["MALE", None]
    _, target = fetch_penguins(return_X_y=True, data_home=tmp_path)
    np.testing.assert_array_equal(target, [0, 2])


PENGUIN = b"species\nAdelie,Dream,39.1,18,181,3750,MALE\n"


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"", "must have 1 rows of 7 cells; it has 0"),
        (PENGUIN + PENGUIN, r"it has 3 of \[1, 7\]"),
        (b"species\nAdelie,Dream\n", r"it has 1 of \[2\]"),
        (PENGUIN.replace(b"3750", b"37.5"), "invalid literal"),
        (PENGUIN.replace(b"39.1", b"long"), "could not convert"),
        (PENGUIN.replace(b"Adelie", b"Emperor"), "unknown: {'Emperor'}"),
    ],
)
def test_a_mixed_file_of_another_shape_is_refused(contents, message):
    with pytest.raises(DatasetError, match=message):
        mixed.parse(replace(mixed.PENGUINS, n_rows={"penguins.csv": 1}), {"penguins.csv": contents})


def png(array):
    pillow = pytest.importorskip("PIL.Image")
    file = io.BytesIO()
    pillow.fromarray(array).save(file, "png")
    return file.getvalue()


def texture_files(folder):
    """Write two images of each texture, of unequal size; return their source."""
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
    with pytest.raises(DatasetError, match="not a readable image"):
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
@pytest.mark.parametrize(
    ("subset", "n_rows", "counts", "n_gaps"),
    [("train", 32_561, [24_720, 7_841], 4_262), ("test", 16_281, [12_435, 3_846], 2_203)],
)
def test_the_published_adult(subset, n_rows, counts, n_gaps):
    adult = fetch_adult(subset=subset)
    assert len(adult.table) == 15
    assert {len(column) for column in adult.table.values()} == {n_rows}
    assert sum(column.dtype == np.int64 for column in adult.table.values()) == 6
    assert sum((column == None).sum() for column in adult.table.values()) == n_gaps  # noqa: E711  # cell by cell
    np.testing.assert_array_equal(np.bincount(adult.target), counts)


@needs_data
def test_the_published_penguins_can_be_fitted():
    penguins = fetch_penguins()
    np.testing.assert_array_equal(np.bincount(penguins.target), [152, 68, 124])
    density = JUPAD(n_components=3, random_state=0).fit(penguins.table).density_
    assert density.schema["species"].categories == tuple(penguins.target_names)
    assert density.condition({"flipper_length_mm": (215, None)}).probability({"species": "Gentoo"}) > 0.9


@needs_data
def test_the_published_textures():
    kth = load_kth_tips()
    np.testing.assert_array_equal(np.bincount(kth.target), [81] * 3)
    odd = [image.shape != (200, 200) for image in kth.images]
    assert sum(odd) == 36
    assert set(kth.target[odd]) == {1}
    assert np.round(np.mean([image.mean() for image in kth.images[:81]]), 1) == 158.5
