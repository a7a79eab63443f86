"""Two mixed tables with numbers, text and gaps: Adult (large) and the Palmer penguins (small)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from jointwise._checks import check_choice
from jointwise._typing import AnyArray
from jointwise.datasets._files import Home, Source, read_files
from jointwise.datasets.uci import UCI, check_shape
from jointwise.exceptions import DatasetError


@dataclass(frozen=True)
class MixedTable:
    """A table whose columns are of several types."""

    source: Source
    columns: Mapping[str, type[int | float | str]]  # names, in the order of the file, and types of the cells
    target: str  # the column that is the class
    classes: tuple[str, ...]  # its values, in the order of their codes
    n_rows: Mapping[str, int]  # of each file
    description: str
    gap: str  # how the file marks a gap
    end: str = ""  # text that may follow the last cell of a row
    header: int = 0  # lines before the rows; comments, which begin with a bar, do not count


ADULT = MixedTable(
    Source(
        "adult",
        f"{UCI}/2/adult.zip",
        {
            "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
            "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        },
    ),
    {
        "age": int, "workclass": str, "fnlwgt": int, "education": str, "education-num": int, "marital-status": str,
        "occupation": str, "relationship": str, "race": str, "sex": str, "capital-gain": int, "capital-loss": int,
        "hours-per-week": int, "native-country": str, "income": str,
    },
    "income",
    ("<=50K", ">50K"),
    {"adult.data": 32_561, "adult.test": 16_281},
    "Adult: people of the 1994 census of the United States, and whether they earned more than 50,000 dollars. B. "
    "Becker, R. Kohavi (1996), UCI Machine Learning Repository, https://doi.org/10.24432/C5XW20, CC BY 4.0.",
    gap="?",
    end=".",
)  # fmt: skip
PENGUINS = MixedTable(
    Source(
        "penguins",
        "https://raw.githubusercontent.com/mwaskom/seaborn-data/71e2436a092d714350de0fc409ca8a8714e7e78f/penguins.csv",
        {"penguins.csv": "e07636bd8af74260099ea2f8678e2eabbf35def579940cc76f67061ee16c06c1"},
    ),
    {
        "species": str, "island": str, "bill_length_mm": float, "bill_depth_mm": float, "flipper_length_mm": int,
        "body_mass_g": int, "sex": str,
    },
    "species",
    ("Adelie", "Chinstrap", "Gentoo"),
    {"penguins.csv": 344},
    "Palmer penguins: size of penguins of three species on three islands. K. B. Gorman, T. D. Williams, W. R. Fraser "
    "(2014), PLoS ONE 9(3): e90081; A. M. Horst, A. P. Hill, K. B. Gorman (2020), "
    "https://doi.org/10.5281/zenodo.3960218, CC0 1.0.",
    gap="",
    header=1,
)  # fmt: skip
ADULT_SUBSETS = {"train": ("adult.data",), "test": ("adult.test",), "all": ("adult.data", "adult.test")}


def fetch_adult(*, subset: str = "all", return_X_y: bool = False, data_home: Home = None) -> Any:
    """Adult: 48,842 people of the 1994 census, 6 columns of integers and 9 of text, with gaps in three of them.

    Columns are named as published: ``age``, ``capital-gain``, ``hours-per-week`` and so on; the class is ``income``.

    Parameters
    ----------
    subset : {"all", "train", "test"}
        The 32,561 published training rows, the 16,281 published test rows, or both in this order.
    return_X_y, data_home
        As in :func:`load_banknote`.

    Returns
    -------
    Bunch
        With ``table`` (all columns by name, with the class), ``data`` (the columns without the class), ``target``
        (class codes), ``feature_names``, ``target_names`` and ``DESCR``. A column is an array of shape (n_rows,) of
        integers, floats, or objects if it holds text. A gap is None in text and NaN in numbers; integers with gaps are
        floats.

    Examples
    --------
    >>> len(fetch_adult(subset="test").table["age"])
    16281
    """
    check_choice("subset", subset, ADULT_SUBSETS)
    return _fetch(ADULT, ADULT_SUBSETS[subset], return_X_y=return_X_y, data_home=data_home)


def fetch_penguins(*, return_X_y: bool = False, data_home: Home = None) -> Any:
    """Palmer penguins: 344 birds, 4 measurements, island and sex, with gaps; the class is ``species``.

    Parameters and result are those of :func:`fetch_adult`, without ``subset``.

    >>> fetch_penguins().table["species"][0]
    'Adelie'
    """
    return _fetch(PENGUINS, tuple(PENGUINS.n_rows), return_X_y=return_X_y, data_home=data_home)


def _fetch(table: MixedTable, names: Sequence[str], *, return_X_y: bool, data_home: Home) -> Any:
    files = read_files(table.source, data_home)
    columns = parse(table, {name: files[name] for name in names})
    data = {name: column for name, column in columns.items() if name != table.target}
    target = np.array([table.classes.index(cell) for cell in columns[table.target]])
    if return_X_y:
        return data, target
    return Bunch(
        table=columns,
        data=data,
        target=target,
        feature_names=list(data),
        target_names=np.array(table.classes),
        DESCR=table.description,
    )


def parse(table: MixedTable, files: Mapping[str, bytes]) -> dict[str, AnyArray]:
    """Return the columns of some files, one file after the other, after checking their shape and cells."""
    rows = [row for name, contents in files.items() for row in _rows(table, name, contents)]
    try:
        columns = {
            name: _column(cells, number, table.gap)
            for (name, number), cells in zip(table.columns.items(), zip(*rows, strict=True), strict=True)
        }
    except ValueError as error:
        raise DatasetError(f"The files {', '.join(files)} have a cell of the wrong type: {error}.") from error
    strange = set(columns[table.target].tolist()) - set(table.classes)
    if strange:
        raise DatasetError(f"The files {', '.join(files)} have a class that is unknown: {strange}.")
    return columns


def _rows(table: MixedTable, name: str, contents: bytes) -> list[list[str]]:
    """Return the cells of the rows of one file, without empty lines and comments."""
    lines = [line for line in contents.decode("ascii", "replace").splitlines() if line.strip() and line[0] != "|"]
    rows = [[cell.strip() for cell in line.removesuffix(table.end).split(",")] for line in lines[table.header :]]
    check_shape(name, rows, table.n_rows[name], len(table.columns))
    return rows


def _column(cells: Sequence[str], number: type[int | float | str], gap: str) -> AnyArray:
    """Return the cells of one column as an array: text as objects, numbers with gaps as floats."""
    if number is str:
        return np.array([None if cell == gap else cell for cell in cells], dtype=object)
    if gap in cells:
        return np.array([np.nan if cell == gap else float(number(cell)) for cell in cells])
    return np.array([number(cell) for cell in cells])
