"""Tables: every column type in every container, with and without missing values, there and back."""

from __future__ import annotations

import datetime as dt
import sys
import warnings
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from jointwise.exceptions import InputError, MissingDependencyError, UnknownNameError, UnseenCategoryWarning
from jointwise.marginals import Profile
from jointwise.tables import decode, encode, read_table
from jointwise.tables.dtypes import is_missing
from jointwise.tables.variables import Schema, Variable

NOON = dt.datetime(2021, 7, 1, 12, 0, 0, 123456)  # noqa: DTZ001  # zones are tested apart
MIDNIGHT = dt.datetime(1969, 12, 31)  # noqa: DTZ001
# name -> values, encoded values, logical type
COLUMNS = {
    "real": ([0.5, -2.25, 1e300], [0.5, -2.25, 1e300], "float64"),
    "whole": ([3, -7, 2**52], [3, -7, 2**52], "int64"),
    "flag": ([True, False, True], [1, 0, 1], "bool"),
    "text": (["b", "a", "b"], [1, 0, 1], "string"),
    "day": ([dt.date(1970, 1, 3), dt.date(1969, 12, 31), dt.date(2024, 2, 29)], [2, -1, 19782], "date"),
    "time": (
        [NOON, MIDNIGHT, NOON],
        [18809 + 43200.123456 / 86400, -1, 18809 + 43200.123456 / 86400],
        "datetime[us]",
    ),
}
CONTAINERS = {
    "dict": dict,
    "pandas": pd.DataFrame,
    "polars": lambda columns: pl.DataFrame(columns, strict=False),
    "pyarrow": pa.table,
}


@pytest.fixture(params=CONTAINERS)
def container(request):
    return request.param


def table_of(container, columns):
    return CONTAINERS[container](columns)


def cells(data, name):
    """Cells of a column as Python objects, None where missing."""
    column = data[name]
    values = column.to_pylist() if isinstance(column, pa.ChunkedArray) else list(column)
    return [None if is_missing(value) else value for value in values]


def profile_schema(data):
    return Profile.of(data).schema()


@pytest.mark.parametrize("gaps", [False, True], ids=["full", "gaps"])
@pytest.mark.parametrize("name", COLUMNS)
def test_each_type_in_each_container_there_and_back(container, name, gaps):
    values, encoded, logical = COLUMNS[name]
    if gaps:
        values, encoded = [*values, None], [*encoded, np.nan]
    data = table_of(container, {name: values})
    schema = profile_schema(data)
    # numpy and pandas have no integers with gaps: there they are floats that hold integers
    promoted = gaps and name == "whole" and container == "pandas"
    assert schema[name].dtype == ("float64" if promoted else logical)
    assert schema.container == container
    matrix = encode(data, schema)
    np.testing.assert_allclose(matrix[:, 0], encoded, rtol=1e-15)
    again = decode(matrix, schema)
    assert type(again) is type(data)
    back = [value.astype(object) if isinstance(value, np.datetime64) else value for value in cells(again, name)]
    assert back == values
    np.testing.assert_array_equal(encode(again, schema), matrix)


@pytest.mark.parametrize("name", COLUMNS)
def test_native_types_are_kept(container, name):
    data = table_of(container, {name: COLUMNS[name][0]})
    again = decode(encode(data, profile_schema(data)), profile_schema(data))
    if container == "pandas":
        pd.testing.assert_frame_equal(again, data)
    elif container in {"polars", "pyarrow"}:
        assert again.schema == data.schema


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_of_objects_reads_as_what_it_holds(name):
    values, encoded, logical = COLUMNS[name]
    for missing in (None, float("nan"), pd.NA, pd.NaT):
        array = np.array([[*values, missing]], dtype=object).T
        schema = profile_schema(array)
        assert schema["x0"].dtype == logical
        np.testing.assert_allclose(encode(array, schema)[:, 0], [*encoded, np.nan], rtol=1e-15)
        assert decode(encode(array, schema), schema).shape == (4, 1)


@pytest.mark.parametrize(
    ("array", "logical"),
    [
        (np.array([[1.5, 2.0], [np.nan, 3.0]]), "float64"),
        (np.array([[1.5, 2.0], [2.5, 3.0]], dtype=np.float32), "float64"),
        (np.array([[1, 2], [3, 4]]), "int64"),
        (np.array([[1, 2], [3, 4]], dtype=np.uint8), "int64"),
        (np.array([[True, False], [False, False]]), "bool"),
        (np.array([["a", "b"], ["b", "c"]]), "string"),
        (np.array([["2020-01-01", "2021-01-01"], ["2020-01-02", "NaT"]], dtype="M8[D]"), "date"),
        (np.array([["2020-01-01T01", "2021-01-01"], ["2020-01-02", "NaT"]], dtype="M8[ns]"), "datetime[ns]"),
        (np.array([["2020-01-01T01", "2021-01-01"], ["2020-01-02", "NaT"]], dtype="M8[h]"), "datetime[s]"),
    ],
    ids=lambda value: getattr(value, "dtype", value),
)
def test_arrays_come_back_as_arrays(array, logical):
    schema = profile_schema(array)
    assert schema.names == ("x0", "x1")
    assert {variable.dtype for variable in schema} == {logical}
    again = decode(encode(array, schema), schema)
    assert isinstance(again, np.ndarray)
    if array.dtype.kind in "fM":
        np.testing.assert_array_equal(again.astype(array.dtype), array)
    else:
        assert again.tolist() == array.tolist()


def test_an_array_of_mixed_columns_comes_back_as_objects():
    array = np.array([[1, "a", 0.5], [2, None, 1.5]], dtype=object)
    schema = profile_schema(array)
    assert [variable.dtype for variable in schema] == ["int64", "string", "float64"]
    again = decode(encode(array, schema), schema)
    assert again.dtype == object
    assert again.tolist() == array.tolist()


def test_lists_that_mix_text_and_numbers_keep_the_numbers():
    schema = profile_schema([[1, "a"], [2, "b"]])
    assert [variable.dtype for variable in schema] == ["int64", "string"]


def test_integers_beside_integers_with_gaps():
    schema = Schema((Variable("x0", "integer", dtype="int64"), Variable("x1", "integer", dtype="int64")))
    assert decode(np.array([[1.0, 2.0]]), schema).dtype == np.int64
    assert decode(np.array([[1.0, np.nan]]), schema).dtype == np.float64


def test_numpy_strings_with_gaps():
    text = np.array([["b"], [None], ["a"]], dtype=np.dtypes.StringDType(na_object=None))
    np.testing.assert_array_equal(encode(text, profile_schema(text)), [[1.0], [np.nan], [0.0]])


def test_masked_arrays_have_gaps():
    masked = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    np.testing.assert_array_equal(encode(masked, profile_schema(masked)), [[1.0, np.nan], [3.0, 4.0]])


PANDAS_TYPES = {
    "Int64": ([1, None, 3], "int64", [1, np.nan, 3]),
    "UInt8": ([1, None, 3], "int64", [1, np.nan, 3]),
    "Float64": ([1.5, None, 3], "float64", [1.5, np.nan, 3]),
    "float32": ([1.5, None, 3], "float64", [1.5, np.nan, 3]),
    "boolean": ([True, None, False], "bool", [1, np.nan, 0]),
    "string": (["b", None, "a"], "string", [1, np.nan, 0]),
    "object": (["b", None, "a"], "string", [1, np.nan, 0]),
    "int64[pyarrow]": ([1, None, 3], "int64", [1, np.nan, 3]),
    "string[pyarrow]": (["b", None, "a"], "string", [1, np.nan, 0]),
    "date32[day][pyarrow]": ([dt.date(1970, 1, 2), None, dt.date(1970, 1, 4)], "date", [1, np.nan, 3]),
    "datetime64[s]": (["1970-01-02", None, "1970-01-01T12"], "datetime[s]", [1, np.nan, 0.5]),
    "datetime64[ns]": (["1970-01-02", None, "1970-01-01T12"], "datetime[ns]", [1, np.nan, 0.5]),
    "datetime64[us, Europe/Paris]": (["1970-01-02", None, "1970-01-03"], "datetime[us,Europe/Paris]", None),
}


@pytest.mark.parametrize("dtype", PANDAS_TYPES)
def test_pandas_types(dtype):
    values, logical, encoded = PANDAS_TYPES[dtype]
    values = pd.to_datetime(values, format="ISO8601") if dtype.startswith("datetime") else values
    values = values.tz_localize("Europe/Paris") if "Paris" in dtype else values
    data = pd.DataFrame({"x": pd.Series(values, dtype=dtype)})
    schema = profile_schema(data)
    assert schema["x"].dtype == logical
    expected = [1 - 1 / 24, np.nan, 2 - 1 / 24] if encoded is None else encoded
    np.testing.assert_allclose(encode(data, schema)[:, 0], expected)
    again = decode(encode(data, schema), schema)
    if dtype in {"Int64", "boolean"} or dtype.startswith("datetime64"):
        pd.testing.assert_frame_equal(again, data)
    np.testing.assert_array_equal(encode(again, schema), encode(data, schema))


def test_big_integers_with_gaps():
    for data in (
        pd.DataFrame({"x": pd.array([2**52, None, -(2**52)], dtype="Int64")}),
        pl.DataFrame({"x": [2**52, None, -(2**52)]}),
        pa.table({"x": [2**52, None, -(2**52)]}),
    ):
        schema = profile_schema(data)
        matrix = encode(data, schema)
        np.testing.assert_array_equal(matrix[:, 0], [2.0**52, np.nan, -(2.0**52)])
        np.testing.assert_array_equal(encode(decode(matrix, schema), schema), matrix)
    huge = pa.table({"x": [2**62, None]})
    with pytest.raises(InputError, match=r"beyond 2\*\*52"):
        profile_schema(huge)
    assert Profile.of(huge).schema({"x": "continuous"})["x"].dtype == "float64"


def categoricals():
    labels, declared = ["low", None, "high", "low"], ["low", "mid", "high"]
    yield "pandas", pd.DataFrame({"x": pd.Categorical(labels, declared, ordered=True)}), declared, True
    yield "pandas-plain", pd.DataFrame({"x": pd.Categorical(labels, declared)}), declared, False
    yield "pandas-int", pd.DataFrame({"x": pd.Categorical([5, None, 2, 5], [5, 2])}), [5, 2], False
    yield "pandas-bool", pd.DataFrame({"x": pd.Categorical([True, None, False, True])}), [False, True], False
    yield "polars-enum", pl.DataFrame({"x": pl.Series(labels, dtype=pl.Enum(declared))}), declared, True
    yield "polars", pl.DataFrame({"x": pl.Series(labels, dtype=pl.Categorical)}), ["high", "low"], False
    yield "arrow", pa.table({"x": pa.array(labels).dictionary_encode()}), ["high", "low"], False
    codes = pa.array([0, None, 2, 0], pa.int32())
    ordered = pa.DictionaryArray.from_arrays(codes, declared, ordered=True)
    yield "arrow-ordered", pa.table({"x": ordered}), declared, True


@pytest.mark.parametrize("case", list(categoricals()), ids=lambda case: case[0])
def test_categoricals(case):
    _, data, categories, ordered = case
    schema = profile_schema(data)
    assert schema["x"].categories == tuple(categories)
    assert schema["x"].ordered == ordered
    matrix = encode(data, schema)
    values = cells(data, "x")
    np.testing.assert_array_equal(
        matrix[:, 0], [np.nan if value is None else categories.index(value) for value in values]
    )
    again = decode(matrix, schema)
    assert cells(again, "x") == values
    if isinstance(data, pd.DataFrame):
        pd.testing.assert_frame_equal(again, data)
    elif isinstance(data, pl.DataFrame):
        assert again.schema == data.schema
    else:
        assert again.schema.field("x").type.ordered == ordered
    assert profile_schema(again) == schema


def test_polars_null_and_nan_are_both_missing():
    data = pl.DataFrame({"x": [1.5, None, float("nan")]})
    np.testing.assert_array_equal(encode(data, profile_schema(data)), [[1.5], [np.nan], [np.nan]])


def test_chunked_dictionaries_with_different_labels():
    chunks = [pa.array(["b", None]).dictionary_encode(), pa.array(["a", "b"]).dictionary_encode()]
    data = pa.table({"x": pa.chunked_array(chunks)})
    schema = profile_schema(data)
    np.testing.assert_array_equal(encode(data, schema)[:, 0], [1, np.nan, 0, 1])


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (pl.DataFrame({"a": [1], "odd": [[1, 2]]}), "odd"),
        (pl.DataFrame({"odd": [{"b": 1}]}), "odd"),
        (pl.DataFrame({"odd": [dt.timedelta(1)]}), "odd"),
        (pl.DataFrame({"odd": [dt.time(1)]}), "odd"),
        (pl.DataFrame({"odd": [b"1"]}), "odd"),
        (pd.DataFrame({"odd": [[1], [2]]}), "odd"),
        (pd.DataFrame({"odd": pd.interval_range(0, 2)}), "odd"),
        (pd.DataFrame({"odd": pd.cut([1.0, 2.0], 2)}), "odd"),
        (pa.table({"odd": [[1], [2]]}), "odd"),
        (np.array([[1], [{"foo": "bar"}]], dtype=object), "x0"),
        (np.array([[np.timedelta64(1, "s")]]), "x0"),
        ([[b"a"], [b"b"]], "x0"),
    ],
)
def test_unsupported_types_name_the_column(data, name):
    with pytest.raises(InputError, match=f"Column '{name}'") as caught:
        Profile.of(data)
    assert isinstance(caught.value, TypeError)


def test_messages_that_scikit_learn_looks_for():
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        Profile.of(np.array([[1.0], [{"foo": "bar"}]], dtype=object))
    with pytest.raises(ValueError, match="Complex data not supported"):
        Profile.of(np.array([[1j]]))
    with pytest.raises(ValueError, match="Complex data not supported"):
        Profile.of(np.array([[1j], [None]], dtype=object))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(np.arange(3.0))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(pd.Series([1.0]))
    with pytest.raises(ValueError, match="Reshape your data"):
        read_table(np.zeros((2, 2, 2)))
    with pytest.raises(TypeError, match="Sparse data"):
        read_table(sparse.csr_array(np.eye(2)))
    with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required."):
        read_table(np.empty((12, 0)))
    with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required."):
        profile_schema(np.empty((0, 3)))
    with pytest.raises(ValueError, match=r"X contains infinity.*'x1'"):
        Profile.of(np.array([[1.0, np.inf]]))
    with pytest.raises(ValueError, match="X has 1 features, but 2 features are expected"):
        encode(np.zeros((3, 1)), profile_schema(np.ones((3, 2))))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (pl.DataFrame({"a": [1]}).lazy(), "collect"),
        (3.0, "got float"),
        ([[1, 2], [3]], "could not be read"),
        ({"a": [1, 2], "b": [1]}, "one length"),
        ({"a": [[1, 2]]}, "one dimension"),
        ({"a": 1}, "Column 'a' must be a sequence"),
        ({"a": "xyz"}, "Column 'a' must be a sequence"),
        (np.array([["a"], [1.0]], dtype=object), "mixes values of type 'float', 'str'"),
        (np.array([[10**400], [1]], dtype=object), "too large"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than one column is called 'a'"),
        (pd.DataFrame([[1, 2]], columns=[1, "1"]), "more than one column is called '1'"),
        (pa.table([[1], [2]], names=["a", "a"]), "more than one column is called 'a'"),
    ],
)
def test_refusals(data, message):
    with pytest.raises(InputError, match=message):
        Profile.of(data)


def test_mixed_time_zones_are_refused():
    moments = [NOON, NOON.replace(tzinfo=dt.UTC)]
    with pytest.raises(InputError, match="mixes time zones"):
        Profile.of(np.array([moments], dtype=object).T)


def test_names_of_pandas_columns_become_text():
    data = pd.DataFrame({0: [1.5, 2.5], ("a", 1): [3.5, 4.5]})
    schema = profile_schema(data)
    assert schema.names == ("0", "('a', 1)")
    np.testing.assert_array_equal(encode(data, schema), [[1.5, 3.5], [2.5, 4.5]])


def test_columns_are_found_by_name(container):
    schema = Schema((Variable("x", "continuous"), Variable("y", "integer")), container)
    data = table_of(container, {"z": ["a", "b"], "y": [1, 2], "x": [0.5, 1.5]})
    np.testing.assert_array_equal(encode(data, schema), [[0.5, 1.0], [1.5, 2.0]])
    part = table_of(container, {"y": [1, 2], "w": [0, 0]})
    with pytest.raises(UnknownNameError, match=r"lacks columns 'x'; it has 'y', 'w'"):
        encode(part, schema)
    np.testing.assert_array_equal(encode(part, schema, absent="missing"), [[np.nan, 1.0], [np.nan, 2.0]])
    assert encode(table_of(container, {"x": [], "y": []}), schema).shape == (0, 2)


def test_unseen_categories(container):
    schema = Schema((Variable("s", "categorical", categories=("a", "b"), dtype="string"), Variable("x", "continuous")))
    data = table_of(container, {"s": ["b", "zebra", None, "a", "yak"], "x": [1.0] * 5})
    np.testing.assert_array_equal(encode(data, schema)[:, 0], [1, -1, np.nan, 0, -1])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        matrix = encode(data, schema, unseen="missing")
    np.testing.assert_array_equal(matrix[:, 0], [1, np.nan, np.nan, 0, np.nan])
    (warning,) = caught
    assert warning.category is UnseenCategoryWarning
    assert "'s': 'yak', 'zebra'" in str(warning.message)
    assert warning.filename == __file__


def test_categories_that_are_declared_but_not_there_do_not_warn():
    schema = Schema((Variable("s", "categorical", categories=("a",), dtype="string"),), "pandas")
    data = pd.DataFrame({"s": pd.Categorical(["a", None], categories=["a", "q"])})
    np.testing.assert_array_equal(encode(data, schema, unseen="missing"), [[0.0], [np.nan]])


def test_numeric_categories(container):
    schema = Schema((Variable("k", "categorical", categories=(1, 5), dtype="int64"),), container)
    data = table_of(container, {"k": [5, 1, None, 7]})
    np.testing.assert_array_equal(encode(data, schema)[:, 0], [1, 0, np.nan, -1])
    assert cells(decode(np.array([[1.0], [0.0]]), schema), "k") == [5, 1]
    assert cells(decode(np.array([[1.0], [np.nan]]), schema), "k") == [5, None]


def test_booleans_are_numbers_and_text_can_be_dates():
    schema = Schema((Variable("k", "integer"), Variable("d", "continuous", dtype="date")), "dict")
    matrix = encode({"k": [True, False, None], "d": ["1970-01-02", None, "1970-01-03"]}, schema)
    np.testing.assert_array_equal(matrix, [[1, 1], [0, np.nan], [np.nan, 2]])


@pytest.mark.parametrize(
    ("variable", "values", "message"),
    [
        (Variable("c", "continuous"), ["a"], "takes numbers; got 'a'"),
        (Variable("c", "continuous"), [dt.date(2020, 1, 1)], "must hold float64 values; it holds date"),
        (Variable("c", "continuous", dtype="date"), [1.5], "must hold date values; it holds float64"),
        (Variable("c", "continuous", dtype="datetime[us,UTC]"), [NOON], "with and without a zone"),
    ],
)
def test_wrong_types_are_refused(container, variable, values, message):
    with pytest.raises(InputError, match=message):
        encode(table_of(container, {"c": values}), Schema((variable,)))


def test_columns_without_values_fit_any_variable(container):
    variables = (
        Variable("a", "continuous", dtype="date"),
        Variable("b", "categorical", categories=("u",)),
        Variable("c", "integer"),
    )
    matrix = encode(table_of(container, {key: [None, None] for key in "abc"}), Schema(variables))
    assert np.isnan(matrix).all()


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow"])
def test_zoned_times(container):
    zone = "Europe/Paris"
    frame = pl.DataFrame({"t": [NOON, None]}).with_columns(
        pl.col("t").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    )
    data = {"polars": lambda: frame, "pyarrow": frame.to_arrow, "pandas": frame.to_pandas}[container]()
    schema = profile_schema(data)
    assert schema["t"].dtype == f"datetime[us,{zone}]"
    again = decode(encode(data, schema), schema)
    assert cells(again, "t")[0] == NOON.replace(tzinfo=dt.UTC)
    assert cells(again, "t")[1] is None
    if container == "pyarrow":
        assert again.schema == data.schema
    else:
        assert again["t"].dtype == data["t"].dtype


def test_decode_refuses_what_it_cannot_write():
    schema = Schema((Variable("s", "categorical", categories=("a", "b"), dtype="string"),))
    for code in (-1.0, 2.0):
        with pytest.raises(InputError, match="codes 0 to 1"):
            decode(np.array([[code]]), schema)
    with pytest.raises(InputError, match="one column for each of 1 variables"):
        decode(np.zeros((2, 2)), schema)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_library_that_is_not_installed_is_asked_for(monkeypatch, library):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=f"pip install {library}"):
        decode(np.zeros((1, 1)), Schema((Variable("x", "continuous"),), library))


def test_encoded_values_are_a_copy():
    array = np.ones((3, 2))
    encode(array, profile_schema(array))[:] = 7.0
    assert np.all(array == 1.0)


def test_tables_pass_through_and_pick_rows(container):
    table = read_table(table_of(container, {"x": [1.0, 2.0, 3.0], "s": ["a", "b", None]}))
    assert read_table(table) is table
    some = table.rows(np.array([True, False, True]))
    assert some.n_rows == 2
    assert some.read(0).values.tolist() == [1.0, 3.0]  # noqa: PD011  # a Column, no frame
    np.testing.assert_array_equal(some.read(1).values, [0.0, np.nan])


def test_object_with_array_method_is_an_array():
    class NotAnArray:
        def __array__(self, dtype=None, copy=None):
            return np.eye(2)

    assert read_table(NotAnArray()).n_rows == 2


@pytest.mark.parametrize("container", ["pandas", "polars", "pyarrow", "numpy"])
@pytest.mark.parametrize("dtype", ["date", "datetime[us]", "datetime[ns]"])
def test_days_beyond_the_calendar_come_back_as_dates_or_missing(container, dtype):
    schema = Schema((Variable("t", "continuous", dtype=dtype),), container)
    days = np.array([[1e12], [-1e12], [0.0], [np.inf], [np.nan]])
    again = encode(decode(days, schema), schema)[:, 0]
    assert again[0] > 1e5
    assert again[1] < -1e5
    assert again[2] == 0
    assert np.isnan(again[3:]).all()


def test_times_with_a_zone_in_a_mapping_come_back_with_it():
    paris = ZoneInfo("Europe/Paris")
    moments = [NOON.replace(tzinfo=paris), None, MIDNIGHT.replace(tzinfo=paris)]
    for data in ({"t": moments}, {"t": np.array(moments, dtype=object)}, np.array([moments], dtype=object).T):
        schema = profile_schema(data)
        again = decode(encode(data, schema), schema)
        column = again["t"] if isinstance(data, dict) else again[:, 0]
        assert column.dtype == object
        assert column.tolist() == moments
        assert {str(moment.tzinfo) for moment in column if moment} == {"Europe/Paris"}
        np.testing.assert_array_equal(encode(again, schema), encode(data, schema))


def test_nanoseconds_among_objects_come_back_as_times():
    stamps = np.array(["2024-05-06T07:08:09.123456789", "2262-04-11T23:47:16.854775807", "NaT"], dtype="M8[ns]")
    for cells in (list(stamps), [pd.Timestamp(stamp) for stamp in stamps]):
        data = np.array([cells, ["a", "b", "c"]], dtype=object).T
        schema = profile_schema(data)
        assert schema["x0"].dtype == "datetime[ns]"
        again = decode(encode(data, schema), schema)
        assert [type(cell) for cell in again[:, 0]] == [np.datetime64] * 3
        np.testing.assert_allclose(encode(again, schema), encode(data, schema), rtol=1e-15)


def test_nanoseconds_in_a_zone_among_objects_end_at_microseconds():
    stamp = pd.Timestamp("2024-05-06T07:08:09.123456789", tz="Europe/Paris")
    data = {"t": [stamp, stamp]}
    schema = profile_schema(data)
    again = decode(encode(data, schema), schema)
    assert again["t"][0] == stamp.replace(nanosecond=0)
    np.testing.assert_array_equal(encode(again, schema), encode(data, schema))


@pytest.mark.parametrize("zone", ["America/New_York", "America/Argentina/Buenos_Aires", "+05:30", "Etc/GMT+5"])
def test_zones_of_pandas_with_any_name(zone):
    times = pd.Series(pd.to_datetime(["2024-05-06T07:08", None])).dt.tz_localize("UTC").dt.tz_convert(zone)
    data = pd.DataFrame({"t": times})
    schema = profile_schema(data)
    np.testing.assert_allclose(encode(data, schema)[:, 0], [19849 + (7 + 8 / 60) / 24, np.nan])
    pd.testing.assert_frame_equal(decode(encode(data, schema), schema), data)


@pytest.mark.parametrize("gap", [False, True], ids=["full", "gaps"])
def test_integers_beyond_64_bits_do_not_wrap(container, gap):
    schema = Schema((Variable("k", "integer", dtype="int64"),), container)
    numbers = np.array([[1e300], [-1e300], [2.0**63], [7.0], *([[np.nan]] if gap else [])])
    found = [None if cell is None else int(cell) for cell in cells(decode(numbers, schema), "k")]
    assert found == [2**53, -(2**53), 2**53, 7, *([None] if gap else [])]
    assert Variable("k", "integer", dtype="int64").decode_value(1e300) == 2**53


def test_integers_that_cannot_be_told_apart_are_no_categories(container):
    profile = Profile.of(table_of(container, {"k": np.array([2**60, 2**60 + 1])}))
    with pytest.raises(InputError, match="too large to tell apart"):
        profile.schema({"k": "categorical"})
