"""Samples of any table that `fit` accepts: the density accepts them back, and none is impossible."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise import JUPAD, Profile
from jointwise.tables import decode, encode

LIMIT = 2**52
EXTREMES = (1e300, -1e300, 1e-300, 0.0, -1.5, 2.0**52)
FIRST, LAST = dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001  # zones follow
ZONES = ("UTC", "Europe/Paris", "America/New_York", "Pacific/Kiritimati", "+05:30")

reals = st.sampled_from(EXTREMES) | st.floats(-1e3, 1e3).map(lambda x: round(x, 2)) | st.floats(-1e300, 1e300)
integers = st.sampled_from([0, 1, LIMIT, -LIMIT]) | st.integers(-9, 9) | st.integers(-LIMIT, LIMIT)
naturals = st.sampled_from([0, 1, LIMIT]) | st.integers(0, 9) | st.integers(0, LIMIT)
texts = st.sampled_from(["", "a", "b", "ä", " "]) | st.text("abc", max_size=3)
days = st.sampled_from([FIRST.date(), LAST.date(), dt.date(2024, 2, 29)]) | st.dates()
# Both ends of the calendar, the epoch, one week of 2024, and any time.
moments = (
    st.sampled_from([FIRST, LAST, LAST.replace(microsecond=0), dt.datetime(1970, 1, 1)])  # noqa: DTZ001
    | st.datetimes(dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 9))  # noqa: DTZ001
    | st.datetimes()
)
nanoseconds = (
    st.sampled_from([0, 1, 2**63 - 1, -(2**63) + 1, 1_700_000_000_123_456_789])
    | st.integers(1_700_000_000 * 10**9, 1_700_100_000 * 10**9)
    | st.integers(-(2**63) + 1, 2**63 - 1)
)


def zoned(cells, zone):
    tz = dt.timezone(dt.timedelta(hours=5, minutes=30)) if zone == "+05:30" else ZoneInfo(zone)
    return [None if cell is None else cell.replace(tzinfo=tz) for cell in cells]


def objects(cells):
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array


def stamps(cells, unit):
    """Return an array of datetime64 in a unit."""
    return np.array(["NaT" if cell is None else cell for cell in cells], dtype=f"M8[{unit}]")


def nano(cells):
    return np.array([-(2**63) if cell is None else cell for cell in cells], dtype=np.int64).view("M8[ns]")


def floats(cells):
    return np.array([np.nan if cell is None else cell for cell in cells], dtype=float)


def whole(cells):
    return np.array([0 if cell is None else cell for cell in cells])


def utc_frame(cells, zone):
    """Return times in UTC, shown in a zone, as a Polars series."""
    return pl.Series(stamps(cells, "us")).dt.replace_time_zone("UTC").dt.convert_time_zone(zone)


def categorical(cells, ordered):
    labels = sorted({cell for cell in cells if cell is not None}, reverse=True)
    return pd.Categorical(cells, [*labels, "never"], ordered=ordered)


def arrow_dictionary(cells):
    return pa.array(cells, pa.string()).dictionary_encode()


# name -> (cells, function that makes a column of them)
ARRAYS = {
    "float": (reals, floats),
    "float32": (st.floats(-(2.0**100), 2.0**100, width=32), lambda cells: floats(cells).astype(np.float32)),
    "int": (integers, whole),
    "uint64": (naturals, lambda cells: whole(cells).astype(np.uint64)),
    "bool": (st.booleans(), lambda cells: np.array([bool(cell) for cell in cells])),
    "text": (texts, lambda cells: np.array([cell or "" for cell in cells])),
    "days": (days, lambda cells: stamps(cells, "D")),
    "s": (
        moments,
        lambda cells: stamps([None if cell is None else cell.replace(microsecond=0) for cell in cells], "s"),
    ),
    "ms": (moments, lambda cells: stamps(cells, "us").astype("M8[ms]")),
    "us": (moments, lambda cells: stamps(cells, "us")),
    "ns": (nanoseconds, nano),
}
OBJECTS = {
    "float": (reals, objects),
    "int": (integers, objects),
    "decimal": (st.decimals(-1000, 1000, places=2), objects),
    "mixed": (st.one_of(reals, integers), objects),
    "bool": (st.booleans(), objects),
    "text": (texts, objects),
    "date": (days, objects),
    "datetime": (moments, objects),
    "ns": (nanoseconds, lambda cells: objects(list(nano(cells)))),
    "Timestamp": (
        nanoseconds.filter(lambda n: abs(n) < 2**62),
        lambda cells: objects([None if cell is None else pd.Timestamp(cell) for cell in cells]),
    ),
} | {zone: (moments, lambda cells, zone=zone: objects(zoned(cells, zone))) for zone in ZONES}
PANDAS = {
    "int64": (integers, lambda cells: pd.Series(whole(cells))),
    "uint64": (naturals, lambda cells: pd.Series(whole(cells)).astype("uint64")),
    "Int64": (integers, lambda cells: pd.array(cells, dtype="Int64")),
    "float": (reals, lambda cells: pd.Series(floats(cells))),
    "string": (texts, lambda cells: pd.Series(cells, dtype="string")),
    "category": (texts, lambda cells: categorical(cells, False)),
    "ordered": (texts, lambda cells: categorical(cells, True)),
    "bool": (st.booleans(), lambda cells: pd.Series([bool(cell) for cell in cells])),
    "boolean": (st.booleans(), lambda cells: pd.array(cells, dtype="boolean")),
    "datetime64[us]": (moments, lambda cells: pd.Series(stamps(cells, "us"))),
    "datetime64[ns]": (nanoseconds, lambda cells: pd.Series(nano(cells))),
    "date": (days, lambda cells: pd.Series(cells, dtype=object)),
    "zone": (moments, lambda cells: utc_frame(cells, "America/New_York").to_pandas()),
    "zone offset": (
        moments,
        lambda cells: pd.Series(stamps(cells, "us")).dt.tz_localize("UTC").dt.tz_convert("+05:30"),
    ),
    "zone ns": (
        nanoseconds,
        lambda cells: pd.Series(nano(cells)).dt.tz_localize("UTC").dt.tz_convert("Europe/Paris"),
    ),
}
POLARS = {
    "Int64": (integers, lambda cells: pl.Series(cells, dtype=pl.Int64)),
    "UInt64": (naturals, lambda cells: pl.Series(cells, dtype=pl.UInt64)),
    "Int8": (st.integers(-128, 127), lambda cells: pl.Series(cells, dtype=pl.Int8)),
    "Float64": (reals, lambda cells: pl.Series(cells, dtype=pl.Float64)),
    "String": (texts, lambda cells: pl.Series(cells, dtype=pl.String)),
    "Categorical": (texts, lambda cells: pl.Series(cells, dtype=pl.Categorical)),
    "Enum": (st.sampled_from("abc"), lambda cells: pl.Series(cells, dtype=pl.Enum(["c", "b", "a", "never"]))),
    "Boolean": (st.booleans(), lambda cells: pl.Series(cells, dtype=pl.Boolean)),
    "Date": (days, lambda cells: pl.Series(cells, dtype=pl.Date)),
    "Datetime": (moments, lambda cells: pl.Series(cells, dtype=pl.Datetime("us"))),
    "Datetime ms": (moments, lambda cells: pl.Series(cells, dtype=pl.Datetime("ms"))),
    "Datetime ns": (nanoseconds, lambda cells: pl.Series(nano(cells))),
    "Decimal": (st.decimals(-1000, 1000, places=2), lambda cells: pl.Series(cells, dtype=pl.Decimal(12, 2))),
} | {f"zone {zone}": (moments, lambda cells, zone=zone: utc_frame(cells, zone)) for zone in ZONES[:4]}
ARROW = {
    "int64": (integers, lambda cells: pa.array(cells, pa.int64())),
    "uint64": (naturals, lambda cells: pa.array(cells, pa.uint64())),
    "float64": (reals, lambda cells: pa.array(cells, pa.float64())),
    "string": (texts, lambda cells: pa.array(cells, pa.string())),
    "dictionary": (texts, arrow_dictionary),
    "bool": (st.booleans(), lambda cells: pa.array(cells, pa.bool_())),
    "date32": (days, lambda cells: pa.array(cells, pa.date32())),
    "timestamp": (moments, lambda cells: pa.array(cells, pa.timestamp("us"))),
    "timestamp s": (moments, lambda cells: pa.array(stamps(cells, "us").astype("M8[s]"))),
    "timestamp ns": (nanoseconds, lambda cells: pa.array(nano(cells))),
    "zone offset": (moments, lambda cells: pa.array(stamps(cells, "us"), pa.timestamp("us", tz="+05:30"))),
    "decimal": (
        st.decimals(-1000, 1000, places=2),
        lambda cells: pa.array([None if cell is None else Decimal(cell) for cell in cells], pa.decimal128(12, 2)),
    ),
} | {f"zone {zone}": (moments, lambda cells, zone=zone: utc_frame(cells, zone).to_arrow()) for zone in ZONES[:4]}
TABLES = {
    "numpy": (ARRAYS, lambda columns: next(iter(columns.values())).reshape(-1, 1)),
    "objects": (OBJECTS, lambda columns: np.column_stack([objects(list(c)) for c in columns.values()])),
    "dict": (ARRAYS | OBJECTS, dict),
    "lists": (OBJECTS, lambda columns: {name: list(column) for name, column in columns.items()}),
    "pandas": (PANDAS, pd.DataFrame),
    "polars": (POLARS, pl.DataFrame),
    "pyarrow": (ARROW, pa.table),
}


def columns(cells, n_rows):
    """Draw the cells of a column: one, few or many different values, with or without gaps, at least one value."""
    few = st.lists(cells, min_size=1, max_size=3).flatmap(
        lambda some: st.lists(st.sampled_from(some), min_size=n_rows, max_size=n_rows)
    )
    full = few | st.lists(cells, min_size=n_rows, max_size=n_rows)
    gaps = st.lists(st.booleans(), min_size=n_rows - 1, max_size=n_rows - 1)
    with_gaps = st.tuples(full, gaps).map(
        lambda pair: [pair[0][0], *(None if gap else cell for cell, gap in zip(pair[0][1:], pair[1], strict=True))]
    )
    return full | with_gaps


@st.composite
def cells_of(draw, container, most_columns):
    """Draw the kinds of some columns, with their cells."""
    kinds = TABLES[container][0]
    names = draw(st.lists(st.sampled_from(sorted(kinds)), min_size=1, max_size=most_columns))
    n_rows = draw(st.integers(5, 40))
    return [(name, draw(columns(kinds[name][0], n_rows))) for name in names]


def table_of(container, drawn):
    kinds, make = TABLES[container]
    return make({f"x{n}": kinds[name][1](cells) for n, (name, cells) in enumerate(drawn)})


@pytest.mark.parametrize("container", TABLES)
@given(data=st.data())
@settings(max_examples=100)
def test_any_table_is_written_and_read_to_the_same_numbers(container, data):
    table = table_of(container, data.draw(cells_of(container, 2)))
    schema = Profile.of(table).schema()
    numbers = encode(table, schema)
    again = decode(numbers, schema)
    assert type(again) is type(table)
    # except at spikes, nanoseconds are rounded to microseconds
    np.testing.assert_allclose(encode(again, schema), numbers, rtol=0, atol=1e-11)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("container", TABLES)
@given(data=st.data())
@settings(max_examples=15)
def test_samples_of_any_table_have_a_density(container, data):
    table = table_of(container, data.draw(cells_of(container, 2)))
    model = JUPAD(n_components=2, beta=1.0, n_init=1, max_iter=20, learn_dictionary=False, random_state=0)
    density = model.fit(table).density_
    sample = density.sample(50, rng=0)
    assert type(sample) is type(table)
    assert np.isfinite(density.logpdf(sample)).all()


NO_END = dt.date(9999, 12, 31)


@pytest.mark.parametrize(
    ("cells", "end"),
    [
        ([NO_END] * 30 + [dt.date(2020, 1, 1 + n) for n in range(20)], NO_END),
        ([LAST] * 30 + [dt.datetime(2020, 1, 1, n) for n in range(20)], LAST),  # noqa: DTZ001
        (
            [LAST.replace(tzinfo=ZoneInfo("America/New_York"))] * 30
            + [dt.datetime(2020, 1, 1, n, tzinfo=ZoneInfo("America/New_York")) for n in range(20)],
            LAST.replace(tzinfo=ZoneInfo("America/New_York")),
        ),
    ],
    ids=["date", "time", "zoned"],
)
@pytest.mark.parametrize("make", [dict, pd.DataFrame, pl.DataFrame, pa.table], ids=lambda make: make.__module__)
def test_a_date_that_means_no_end_stays_one(cells, end, make):
    density = JUPAD(n_components=1, random_state=0).fit(make({"until": cells})).density_
    assert density.mode() == {"until": end}
    assert density.quantile("until", 0.9) == end
    assert density.probability({"until": end}) == pytest.approx(0.6, abs=0.1)
    sample = density.sample(200, rng=0)
    assert np.isfinite(density.logpdf(sample)).all()
    share = np.mean(encode(sample, density.schema)[:, 0] == density.schema["until"].encode_value(end))
    assert share == pytest.approx(0.6, abs=0.15)
