"""Four tables of the UCI repository that the paper classifies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from jointwise._typing import AnyArray
from jointwise.datasets._files import Home, Source, read_files
from jointwise.exceptions import DatasetError

UCI = "https://archive.ics.uci.edu/static/public"


@dataclass(frozen=True)
class NumericTable:
    """A table of numbers whose last column is the class."""

    source: Source
    features: tuple[str, ...]  # names of the columns before the class
    classes: dict[str, str]  # each class as written in the file, and its name
    n_rows: int
    description: str
    separator: str | None = None  # of the cells; None is any white space
    header_end: str | None = None  # the line before the first row, in lower case; None if there is no header
    number: type[int | float] = float  # type of every cell but the class


BANKNOTE = NumericTable(
    Source(
        "banknote",
        f"{UCI}/267/banknote+authentication.zip",
        {"data_banknote_authentication.txt": "d0539aaed2139ba7a587b3e34fb345ce503ff7d5d33dbf9912d8e195ce425cb9"},
    ),
    ("variance", "skewness", "curtosis", "entropy"),
    {"0": "0", "1": "1"},
    1372,
    "Banknote Authentication: statistics of the wavelet transform of images of banknotes. V. Lohweg (2012), UCI "
    "Machine Learning Repository, https://doi.org/10.24432/C55P57, CC BY 4.0.",
    separator=",",
)
WIFI = NumericTable(
    Source(
        "wifi_localization",
        f"{UCI}/422/wireless+indoor+localization.zip",
        {"wifi_localization.txt": "2ae62faa28071e47b875d6bb64175238574a8d1366d1b64ab355bc1c87220294"},
    ),
    tuple(f"signal_{n}" for n in range(1, 8)),
    {str(room): f"room {room}" for room in range(1, 5)},
    2000,
    "Wireless Indoor Localization: strength of seven signals in dBm, seen from one of four rooms. R. Bhatt (2017), UCI "
    "Machine Learning Repository, https://doi.org/10.24432/C51880, CC BY 4.0.",
    number=int,
)
RAISIN = NumericTable(
    Source(
        "raisin",
        f"{UCI}/850/raisin.zip",
        {"Raisin_Dataset.arff": "8a33803b5961650225150740fa09fa31ee8875266277c7ac3291e2a3ee351814"},
    ),
    ("area", "major_axis_length", "minor_axis_length", "eccentricity", "convex_area", "extent", "perimeter"),
    {"Kecimen": "Kecimen", "Besni": "Besni"},
    900,
    "Raisin: shape of raisin grains of two varieties. I. Cinar, M. Koklu, S. Tasdemir (2020), UCI Machine Learning "
    "Repository, https://doi.org/10.24432/C5660T, CC BY 4.0.",
    separator=",",
    header_end="@data",
)
SEEDS = NumericTable(
    Source(
        "seeds",
        f"{UCI}/236/seeds.zip",
        {"seeds_dataset.txt": "1f3f83c0d8485ae9148061389d19628607e3f5660e3d6f40ec9102fb398bb12f"},
    ),
    ("area", "perimeter", "compactness", "kernel_length", "kernel_width", "asymmetry", "groove_length"),
    {"1": "Kama", "2": "Rosa", "3": "Canadian"},
    210,
    "Seeds: shape of wheat kernels of three varieties. M. Charytanowicz, J. Niewczas, P. Kulczycki, P. Kowalski, S. "
    "Lukasik (2010), UCI Machine Learning Repository, https://doi.org/10.24432/C5H30K, CC BY 4.0.",
)


def load_banknote(*, return_X_y: bool = False, data_home: Home = None) -> Any:
    """Banknote Authentication: 1,372 rows, 4 features, 2 classes.

    Parameters
    ----------
    return_X_y : bool
        Return only ``(data, target)``.
    data_home : path, optional
        Folder of the data files. By default the variable JOINTWISE_DATA, else ``~/jointwise_data``. A missing file is
        downloaded into it.

    Returns
    -------
    Bunch
        With ``data`` (n_rows, n_features), ``target`` (class codes), ``feature_names``, ``target_names`` and ``DESCR``.

    Examples
    --------
    >>> load_banknote().data.shape
    (1372, 4)
    """
    return _load(BANKNOTE, return_X_y=return_X_y, data_home=data_home)


def load_wifi(*, return_X_y: bool = False, data_home: Home = None) -> Any:
    """Wireless Indoor Localization: 2,000 rows, 7 integer features, 4 classes; see :func:`load_banknote`.

    >>> load_wifi().data.shape
    (2000, 7)
    """
    return _load(WIFI, return_X_y=return_X_y, data_home=data_home)


def load_raisin(*, return_X_y: bool = False, data_home: Home = None) -> Any:
    """Raisin: 900 rows, 7 features, 2 classes; see :func:`load_banknote`.

    >>> load_raisin().data.shape
    (900, 7)
    """
    return _load(RAISIN, return_X_y=return_X_y, data_home=data_home)


def load_seeds(*, return_X_y: bool = False, data_home: Home = None) -> Any:
    """Seeds: 210 rows, 7 features, 3 classes; see :func:`load_banknote`.

    >>> load_seeds().data.shape
    (210, 7)
    """
    return _load(SEEDS, return_X_y=return_X_y, data_home=data_home)


def _load(table: NumericTable, *, return_X_y: bool, data_home: Home) -> Any:
    ((name, contents),) = read_files(table.source, data_home).items()
    data, target = parse(table, name, contents)
    if return_X_y:
        return data, target
    return Bunch(
        data=data,
        target=target,
        feature_names=list(table.features),
        target_names=np.array(list(table.classes.values())),
        DESCR=table.description,
    )


def parse(table: NumericTable, name: str, contents: bytes) -> tuple[AnyArray, AnyArray]:
    """Return numbers and class codes of the rows of a file, after checking their number and width."""
    # the comments of one file have no known encoding; rows are ASCII
    lines = [line for line in contents.decode("ascii", "replace").splitlines() if line.strip()]
    if table.header_end is not None:
        lines = lines[_header_length(table.header_end, name, lines) :]
    rows = [line.split(table.separator) for line in lines]
    check_shape(name, rows, table.n_rows, len(table.features) + 1)
    codes = list(table.classes)
    try:
        data = np.array([[table.number(cell) for cell in row[:-1]] for row in rows])
        target = np.array([codes.index(row[-1].strip()) for row in rows])
    except ValueError as error:
        raise DatasetError(f"The file {name!r} has a cell of the wrong type: {error}.") from error
    return data, target


def check_shape(name: str, rows: Sequence[Sequence[str]], n_rows: int, width: int) -> None:
    """Refuse a file without exactly this many rows of this many cells."""
    if len(rows) != n_rows or any(len(row) != width for row in rows):
        raise DatasetError(
            f"The file {name!r} must have {n_rows} rows of {width} cells; it has {len(rows)} of "
            f"{sorted({len(row) for row in rows})}."
        )


def _header_length(header_end: str, name: str, lines: Sequence[str]) -> int:
    for number, line in enumerate(lines, 1):
        if line.strip().lower() == header_end:
            return number
    raise DatasetError(f"The file {name!r} has no line {header_end!r}, which must come before its rows.")
