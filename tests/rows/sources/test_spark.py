"""A Spark DataFrame gives the model of the frame in memory."""

import datetime as dt
import os
import shutil
import sys
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from tests.rows.sources.cluster_cases import (
    assert_same_model,
    assert_same_table,
    assert_weighs,
    in_parts,
    mixed_frame,
    model,
    stack,
)

from jointwise.exceptions import ClusterError, InputError, MissingDependencyError
from jointwise.marginals import Profile
from jointwise.rows.sources import find_source, spark_frame
from jointwise.rows.sources.spark_frame import SparkSource

pyspark = pytest.importorskip("pyspark")

pytestmark = [
    pytest.mark.clusters,
    pytest.mark.skipif(shutil.which("java") is None, reason="Spark needs Java, and there is none on the path"),
    pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas:FutureWarning"),
]


@pytest.fixture(scope="module")
def spark():
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="module")
def frame():
    return mixed_frame()


@pytest.fixture(scope="module")
def table(spark, frame):
    """Return the frame in Spark, in four partitions, one without rows; missing values are nulls."""
    rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in frame.astype(object).to_numpy().tolist()]
    layout = "number double, count long, text string, flag boolean, day date"
    bounds = [0, 150, 150, 400, len(rows)]
    parts = [rows[a:b] for a, b in pairwise(bounds)]
    spread = spark.sparkContext.parallelize(parts, 4).flatMap(lambda part: part)
    made = spark.createDataFrame(spread, layout)
    assert made.rdd.getNumPartitions() == 4
    return made


def persisted(spark):
    return len(spark.sparkContext._jsc.getPersistentRDDs())


def test_a_spark_frame_is_found_by_its_type(table):
    assert isinstance(find_source(table), SparkSource)


def test_the_table_is_that_in_memory(spark, monkeypatch, table, frame):
    assert_same_table(find_source(table), frame)
    assert persisted(spark) == 0


def test_the_model_is_that_of_the_frame_in_memory(spark, table, frame):
    import pyarrow as pa

    expected, found = model(frame), model(table)
    assert_same_model(found, expected)
    assert found.feature_names_in_.tolist() == list(frame.columns)
    assert isinstance(found.sample(3), pa.Table)
    assert persisted(spark) == 0


@pytest.mark.parametrize("settings", [{"max_iter": 30, "tol": 1e-3}, {"method": "pairs"}])
def test_a_fit_where_the_rows_lie_is_the_same_to_rounding(spark, monkeypatch, table, frame, settings):
    in_parts(monkeypatch)
    expected, found = model(frame, **settings), model(table, **settings)
    np.testing.assert_allclose(found.score_samples(frame), expected.score_samples(frame), atol=1e-6)
    assert persisted(spark) == 0


def test_the_stack_is_that_of_the_frame_in_memory(spark, table, frame):
    expected, found = stack(frame), stack(table)
    assert found.expert_weights_ == expected.expert_weights_
    assert np.array_equal(found.score_samples(frame), expected.score_samples(frame))


def test_a_stack_fitted_where_the_rows_lie_is_the_same_to_rounding(monkeypatch, spark, table, frame):
    in_parts(monkeypatch)
    expected, found = stack(frame), stack(table)
    np.testing.assert_allclose(found.score_samples(frame), expected.score_samples(frame), atol=1e-6)


def test_a_column_may_weigh_the_rows(spark, monkeypatch, frame):
    plain = frame.drop(columns="day")

    def make(weighted):
        rows = [tuple(None if pd.isna(cell) else cell for cell in row) for row in weighted.astype(object).to_numpy()]
        spread = spark.sparkContext.parallelize(rows, 3)
        return spark.createDataFrame(spread, "number double, count long, text string, flag boolean, w double")

    assert_weighs(make, plain, where="here")
    in_parts(monkeypatch)
    assert_weighs(make, plain, where="there")


def test_partitions_in_several_blocks_keep_the_order_of_rows(spark):
    numbers = np.arange(50_000)
    source = find_source(spark.range(50_000, numPartitions=2).selectExpr("id", "id % 7 as week"))
    profile = source.profile()
    schema = profile.schema()
    axes = profile.axes(schema, 128)
    with source.coded(schema, axes, None) as rows:
        assert rows._parts.lengths == [25_000, 25_000]
        chosen = np.array([0, 3, 24_999, 25_000, 49_998])
        assert rows.take(chosen).codes[:, 1].tolist() == (numbers[chosen] % 7).tolist()


def test_batches_are_gathered_into_blocks(monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    monkeypatch.setattr(spark_frame, "BLOCK_ROWS", 5)
    batches = [pyarrow.record_batch({"x0": np.arange(n)}) for n in (3, 0, 4, 6, 2, 0)]
    blocks = list(spark_frame._blocks(iter(batches), ["a.b"]))
    assert [block.num_rows for block in blocks] == [7, 6, 2]
    assert blocks[0].column_names == ["a.b"]
    assert not list(spark_frame._blocks(iter(batches[1:2]), ["a.b"]))


def test_every_type_of_spark_is_read(spark):
    moment = dt.datetime(2024, 5, 17, 12, 30, tzinfo=dt.UTC)
    names = ["a.b", "day", "moment", "plain", "sum", "flag", "small", "none"]
    rows = [
        ("x", dt.date(2024, 5, 17), moment, moment.replace(tzinfo=None), Decimal("1.25"), True, 3, None),
        (None, None, None, None, None, None, None, None),
        ("y", dt.date(2024, 5, 18), moment, moment.replace(tzinfo=None), Decimal("2.50"), False, 4, None),
    ]
    layout = (
        "a string, day date, m timestamp, p timestamp_ntz, s decimal(10,2), flag boolean, small smallint, none void"
    )
    profile = find_source(spark.createDataFrame(rows, layout).toDF(*names)).profile()
    assert profile.names == tuple(names)
    assert [column.dtype for column in profile] == [
        "string", "date", "datetime[us,UTC]", "datetime[us]", "float64", "bool", "int64", "null",
    ]  # fmt: skip
    assert [column.n_missing for column in profile] == [1.0] * 7 + [3.0]
    assert profile.columns[4].sketch.low.tolist() == [1.25, 2.5]


def test_a_column_that_is_no_number_text_or_date_is_refused(spark):
    with pytest.raises(InputError, match=r"Column 'x' is of type .*not supported") as told:
        model(spark.sql("select array(1, 2) as x"))
    assert "\n" not in str(told.value)


def test_columns_of_one_name_are_refused(spark):
    with pytest.raises(InputError, match="Column names must differ"):
        model(spark.range(9).selectExpr("id as x", "id as x"))


def test_no_rows_is_no_table(spark):
    with pytest.raises(InputError, match="0 sample"):
        model(spark.range(0))


def test_codes_are_forgotten_after_an_error(spark, table, frame):
    profile = Profile.of(frame)
    schema = profile.schema()

    def broken(error):
        with find_source(table).coded(schema, profile.axes(schema, 8), None) as rows:
            assert persisted(spark) == 1
            assert len(rows) == len(frame)
            raise error

    with pytest.raises(KeyboardInterrupt):
        broken(KeyboardInterrupt)
    assert persisted(spark) == 0


def test_an_error_of_coding_comes_out_as_itself_and_leaves_nothing(spark, table, frame):
    profile = Profile.of(frame.assign(text=1.5))
    schema = profile.schema()
    with (
        pytest.raises(InputError, match="text") as told,
        find_source(table).coded(schema, profile.axes(schema, 8), None) as rows,
    ):
        len(rows)
    assert "\n" not in str(told.value)
    assert persisted(spark) == 0


def test_a_missing_package_is_asked_for_by_name():
    from pyspark.errors import PySparkImportError

    with pytest.raises(MissingDependencyError, match=r"pip install \"jointwise\[spark\]\""), spark_frame._explained():
        raise PySparkImportError("PyArrow >= 18 must be installed")


def test_a_frame_that_looks_like_pandas_is_read_as_spark(table):
    class Alike:
        def to_spark(self):
            return table

    assert spark_frame.source(Alike())._names == table.columns


def test_an_error_of_spark_becomes_one_sentence(spark):
    with pytest.raises(ClusterError, match="Spark could not do its part of the fit") as told:
        model(spark.range(3).selectExpr("raise_error('lost') as x", "id"))
    assert "\n" not in str(told.value)
