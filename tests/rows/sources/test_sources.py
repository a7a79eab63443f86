"""Every source of rows gives the same profile, axes, counts and model, bit for bit."""

import errno
import sys
import warnings

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.estimators.cases import make_classifier, make_imputer
from tests.rows.sources.cases import GUISES, arrow, as_source, columns, guise, parts
from tests.rows.sources.cluster_cases import stack

from jointwise import JUPAD, PairwiseMarginals, Profile, engines
from jointwise.exceptions import InputError, LeftOutWarning, MissingDependencyError, StorageError
from jointwise.fitting import order
from jointwise.marginals import coding
from jointwise.rows import store
from jointwise.rows.sources import LocalSource, find_source, local

DUCKDB = pytest.param("duckdb", marks=pytest.mark.clusters)


@pytest.fixture(params=[DUCKDB if kind == "duckdb" else kind for kind in GUISES])
def data(request, tmp_path):
    return guise(request.param, arrow(), tmp_path)


def fitted(data, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few steps need not converge
        return JUPAD(3, random_state=0, max_iter=30, **settings).fit(data)


def same_model(a, b):
    pairs = zip((a.weights, *a.coefficients), (b.weights, *b.coefficients), strict=True)
    return all(np.array_equal(x, y) for x, y in pairs)


@pytest.fixture(scope="module")
def whole():
    return fitted(arrow())


def counts(source, schema, axes):
    return source.reduce(lambda block: PairwiseMarginals.of(block, schema, axes))


def test_profile_axes_and_counts_are_those_of_the_table(data):
    expected = Profile.of(arrow())
    schema = expected.schema()
    axes = expected.axes(schema, 32)
    source = as_source(data)
    profile = source.profile()
    assert profile.columns == expected.columns
    assert profile.schema().variables == schema.variables
    assert profile.axes(schema, 32) == axes
    assert counts(source, schema, axes) == PairwiseMarginals.of(arrow(), schema, axes)
    with source.coded(schema, axes, None) as rows:
        assert len(rows) == len(arrow())
        for n in range(len(schema)):
            assert np.array_equal(rows.marginal(n), PairwiseMarginals.of(arrow(), schema, axes).marginal(n))


def test_the_model_is_that_of_the_table(data, whole):
    model = fitted(data)
    assert model.density_.schema.variables == whole.density_.schema.variables
    assert same_model(model.density_.mixture, whole.density_.mixture)
    assert np.array_equal(model.score_samples(arrow()), whole.score_samples(arrow()))
    assert model.feature_names_in_.tolist() == list(columns())


@pytest.fixture(scope="module")
def whole_stack():
    return stack(arrow())


def test_the_stack_is_that_of_the_table(data, whole_stack):
    model = stack(data)
    assert model.expert_weights_ == whole_stack.expert_weights_
    assert np.array_equal(model.score_samples(arrow()), whole_stack.score_samples(arrow()))


def test_samples_come_back_in_the_frames_of_the_source(tmp_path):
    assert isinstance(fitted(guise("lazy", arrow(), tmp_path)).sample(3), pl.DataFrame)
    assert isinstance(fitted(guise("parquet", arrow(), tmp_path)).sample(3), pa.Table)


@given(st.lists(st.integers(0, 200), max_size=6))
@settings(max_examples=25)
def test_where_blocks_end_does_not_matter(cuts):
    table = arrow(200)
    source = LocalSource(lambda: iter(parts(table, sorted(cuts))))
    profile = Profile.of(table)
    schema = profile.schema()
    axes = profile.axes(schema, 16)
    assert source.profile() == profile
    assert counts(source, schema, axes) == PairwiseMarginals.of(table, schema, axes)
    with source.coded(schema, axes, None) as rows, as_source(table).coded(schema, axes, None) as once:
        assert np.array_equal(rows.codes, once.codes)


@pytest.mark.parametrize("kind", ["parquet", "lazy", DUCKDB])
def test_size_of_blocks_does_not_matter(kind, tmp_path, monkeypatch, whole):
    monkeypatch.setattr(local, "BLOCK_CELLS", 60)
    model = fitted(guise(kind, arrow(), tmp_path))
    assert same_model(model.density_.mixture, whole.density_.mixture)


def test_blocks_are_small(tmp_path, monkeypatch):
    monkeypatch.setattr(local, "BLOCK_CELLS", 60)
    sizes = [len(block) for block in find_source(guise("parquet", arrow(), tmp_path))._blocks()]
    assert max(sizes) <= 20
    assert sum(sizes) == len(arrow())


def test_a_lazy_frame_is_never_collected(monkeypatch, tmp_path):
    def refuse(*_args, **_kwargs):
        raise AssertionError("collected")

    frame = guise("lazy", arrow(), tmp_path)
    monkeypatch.setattr(pl.LazyFrame, "collect", refuse)
    fitted(frame)


@pytest.mark.clusters
def test_a_query_of_a_relation_is_run_anew_for_each_pass(whole, tmp_path):
    relation = guise("duckdb", arrow(), tmp_path)
    if hasattr(type(relation), "fetchmany"):  # partly read already, in older versions
        relation.fetchmany(5)
    assert same_model(fitted(relation).density_.mixture, whole.density_.mixture)
    assert same_model(fitted(relation).density_.mixture, whole.density_.mixture), "and a second time"


@pytest.mark.clusters
def test_any_order_of_rows_gives_the_model(whole):
    import duckdb

    connection = duckdb.connect(config={"preserve_insertion_order": "false", "threads": 2})
    connection.register("rows", arrow())
    for by in ("day", "number desc"):
        model = fitted(connection.sql(f"select * from rows order by {by}"))
        assert same_model(model.density_.mixture, whole.density_.mixture)


@pytest.mark.clusters
def test_a_relation_that_cannot_be_read_is_one_sentence():
    import duckdb

    connection = duckdb.connect()
    relation = connection.sql("select 1 as a, 'x' as b")
    connection.close()
    with pytest.raises(InputError, match="DuckDB relation could not be read"):
        JUPAD().fit(relation)
    failing = duckdb.connect().sql("select case when range = 9 then error('broken') else 1.5 end as a from range(10)")
    with pytest.raises(InputError, match="broken"):
        JUPAD().fit(failing)


def test_packages_that_are_missing_or_old_are_asked_for(monkeypatch):
    relation = type("DuckDBPyRelation", (), {"__module__": "duckdb"})()
    old = type("LazyFrame", (), {"__module__": "polars.lazyframe.frame"})()
    with pytest.raises(MissingDependencyError, match=r"polars 1\.34 or later"):
        JUPAD().fit(old)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "jointwise\[duckdb\]"'):
        JUPAD().fit(relation)


def test_files_that_cannot_be_read_are_one_sentence(tmp_path):
    good, bad = tmp_path / "0.parquet", tmp_path / "1.parquet"
    pq.write_table(arrow(), good)
    whole = good.read_bytes()
    middle = len(whole) // 3
    bad.write_bytes(whole[:middle] + b"\xff" * 2000 + whole[middle + 2000 :])
    with pytest.raises(InputError, match="The Arrow dataset could not be read"):
        JUPAD().fit(ds.dataset([good, bad]))
    bad.write_bytes(b"not parquet")
    with pytest.raises(InputError, match="The lazy frame could not be read"):
        JUPAD().fit(pl.scan_parquet([good, bad]))
    with pytest.raises(InputError, match="The lazy frame could not be read"):
        JUPAD().fit(pl.LazyFrame({"a": [1.0]}).select("b"))


def test_compiled_coding_and_counting_change_nothing(data, monkeypatch):
    expected = Profile.of(arrow())
    schema = expected.schema()
    axes = expected.axes(schema, 32)
    plain = PairwiseMarginals.of(arrow(), schema, axes)
    for module in (coding, engines):
        monkeypatch.setattr(module, "COMPILED_TABLE_CELLS", 0)
    monkeypatch.setattr(engines, "COMPILED_PAIRS", 0)
    assert counts(as_source(data), schema, axes) == plain


# ---- tables as they come


def test_dictionaries_may_differ_between_blocks():
    texts = [["b", "a"], [None, "c"], ["a", "a"]]
    blocks = [pa.table({"t": pa.array(text).dictionary_encode(), "x": [1.0, 2.0]}) for text in texts]
    source = LocalSource(lambda: iter(blocks))
    plain = pa.table({"t": ["b", "a", None, "c", "a", "a"], "x": [1.0, 2.0] * 3})
    profile = source.profile()
    schema = profile.schema()
    assert schema["t"].categories == ("a", "b", "c")
    axes = profile.axes(schema, 4)
    assert np.array_equal(counts(source, schema, axes).counts, PairwiseMarginals.of(plain, schema, axes).counts)
    one = pa.concat_tables(blocks)
    assert Profile.of(one) == profile
    assert counts(as_source(one), schema, axes) == counts(source, schema, axes)


def test_a_column_that_one_file_lacks_is_missing_there(tmp_path):
    table = pa.table({"a": [1.5, 2.5], "b": ["x", "y"]})
    pq.write_table(table, tmp_path / "0.parquet")
    pq.write_table(table.select(["a"]), tmp_path / "1.parquet")
    profile = find_source(ds.dataset(tmp_path)).profile()
    assert [(c.name, c.n, c.n_missing) for c in profile] == [("a", 4.0, 0.0), ("b", 2.0, 2.0)]


def test_folders_of_partitions_and_csv(tmp_path):
    table = arrow(50).append_column("part", pa.array([f"p{n % 3}" for n in range(50)]))
    ds.write_dataset(table, tmp_path / "hive", format="parquet", partitioning=["part"], partitioning_flavor="hive")
    found = find_source(ds.dataset(tmp_path / "hive", partitioning="hive")).profile()
    expected = {column.name: column for column in Profile.of(table)}
    assert {column.name: (column.n, column.n_missing) for column in found} == {
        name: (column.n, column.n_missing) for name, column in expected.items()
    }
    ds.write_dataset(arrow(50), tmp_path / "csv", format="csv")
    assert find_source(ds.dataset(tmp_path / "csv", format="csv")).profile().n_rows == 50


def test_every_type_of_cell():
    import decimal

    values = {
        "decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")], pa.decimal128(9, 2)),
        "small": pa.array([1, None, 3], pa.int8()),
        "half": pa.array([0.5, 1.5, None], pa.float32()),
        "time": pa.array([0, 10**6, None], pa.timestamp("us")),
        "long": pa.array(["a", None, "b"], pa.large_string()),
        "view": pa.array(["a", None, "b"], pa.string_view()),
        "null": pa.nulls(3),
    }
    whole = pa.table(values)
    blocks = [whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 2)]
    profile = LocalSource(lambda: iter(blocks)).profile()
    assert profile == Profile.of(whole)
    assert [(c.n, c.n_missing) for c in profile][:-1] == [(2.0, 1.0)] * 6


def test_no_rows_at_all_is_one_sentence(tmp_path):
    for empty in (ds.dataset(arrow().slice(0, 0)), pl.from_arrow(arrow().slice(0, 0)).lazy()):
        with pytest.raises(InputError, match=r"0 sample\(s\)"):
            JUPAD().fit(empty)


@pytest.mark.parametrize("other", [iter([[1.0]]), (row for row in [[1.0]]), object()])
def test_other_objects_are_no_source(other):
    assert find_source(other) is None
    with pytest.raises(InputError, match="Expected a 2D array, a mapping or a frame"):
        JUPAD().fit(other)


def test_a_table_that_changes_between_passes_is_refused():
    passes = iter([parts(arrow(), [300]), parts(arrow(600), [300])])
    with pytest.raises(InputError, match="had 700 rows when it was read first and 600"):
        JUPAD().fit_blocks(lambda: next(passes))


def test_too_many_categories_are_left_out_and_take_no_memory(monkeypatch):
    from jointwise.marginals import column

    monkeypatch.setattr(column, "MAX_BINS", 100)

    def blocks():
        for n in range(50):
            yield {"name": [f"{n}-{i}" for i in range(30)], "x": np.arange(30.0)}

    with pytest.warns(LeftOutWarning, match="'name'"):
        model = JUPAD(random_state=0).fit_blocks(blocks)
    assert model.density_.names == ("x",)
    assert model.feature_names_in_.tolist() == ["name", "x"]
    with pytest.raises(
        InputError, match=r"Column 'name' has more than 100 different values.*[Dd]rop it.*merge rare.*kinds"
    ):
        JUPAD(keep=["name"]).fit_blocks(blocks)


def test_too_many_declared_categories_name_the_column(monkeypatch):
    from jointwise.marginals import column

    monkeypatch.setattr(column, "MAX_BINS", 3)
    declared = pl.DataFrame({"name": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b", "c", "d"])), "x": [1.5, 2.5]})
    with pytest.raises(InputError, match="Column 'name' has 4 different values"):
        JUPAD().fit(declared.lazy())


# ---- weights, classes, scores


def test_a_column_of_weights_is_no_variable(tmp_path):
    table = arrow(300)
    weights = np.random.default_rng(0).integers(0, 4, 300)
    with_weights = table.append_column("w", pa.array(weights))
    repeated = table.take(pa.array(np.repeat(np.arange(300), weights)))
    model = JUPAD(2, random_state=0).fit(guise("parquet", with_weights, tmp_path), sample_weight="w")
    assert model.density_.names == tuple(table.column_names)
    assert same_model(model.density_.mixture, JUPAD(2, random_state=0).fit(repeated).density_.mixture)


@pytest.mark.parametrize(
    ("weight", "error"),
    [
        (np.ones(700), "name of one of its columns; got ndarray"),
        ("nubmer", "did you mean 'number'"),
        ("text", "column of numbers; 'text' holds string"),
        ("number", "finite numbers"),
    ],
)
def test_weights_that_do_not_fit(weight, error, tmp_path):
    with pytest.raises((InputError, KeyError), match=error):
        JUPAD().fit(guise("lazy", arrow(), tmp_path), sample_weight=weight)


def test_the_classifier_says_what_to_do(tmp_path):
    with pytest.raises(InputError, match=r"JointClassifier takes tables in memory.*JUPAD with the class as one"):
        make_classifier().fit(guise("lazy", arrow(), tmp_path), ["a"] * 700)


@pytest.mark.filterwarnings("ignore::jointwise.exceptions.MisfitWarning")  # two components for three groups
@pytest.mark.parametrize(
    ("kind", "call"),
    [
        ("lazy", "collect"),
        ("parquet", "to_table"),
        pytest.param("duckdb", "to_arrow_table", marks=pytest.mark.clusters),
    ],
)
def test_scores_are_of_tables_in_memory(kind, call, tmp_path, whole):
    lazy = guise(kind, arrow(), tmp_path)
    imputer = make_imputer(2, random_state=0).fit(arrow())
    for ask in (whole.score_samples, whole.density_.logpdf, imputer.transform):
        with pytest.raises(InputError, match=rf"`\.{call}\(\)` on it first, or give its rows in blocks"):
            ask(lazy)


# ---- the scratch file


def test_codes_in_a_file_give_the_same_model(tmp_path, monkeypatch, whole):
    monkeypatch.setattr(store, "MEMORY_BYTES", 5)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    model = fitted(guise("blocks", arrow(), tmp_path), scratch_dir=scratch)
    assert same_model(model.density_.mixture, whole.density_.mixture)
    assert not list(scratch.iterdir())


@pytest.mark.slow
def test_passes_of_em_over_the_file_are_those_over_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(order, "CANONICAL_ROWS", 0)  # equal rows are not gathered in memory first
    table = arrow(10_000).append_column("w", pa.array(np.linspace(0.0, 2.0, 10_000)))
    few = {"n_components": 2, "random_state": 0, "max_iter": 3}
    source = guise("blocks", table, tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for weights in (None, "w"):
            memory = JUPAD(**few).fit(source, sample_weight=weights)
            with monkeypatch.context() as patch:
                patch.setattr(store, "MEMORY_BYTES", 5)
                assert same_model(
                    JUPAD(**few).fit(source, sample_weight=weights).density_.mixture, memory.density_.mixture
                )


def test_nothing_is_left_after_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MEMORY_BYTES", 5)
    calls = []

    def blocks():
        calls.append(1)
        yield from parts(arrow(), [100])
        if len(calls) == 2:
            raise RuntimeError("the disk was unplugged")

    with pytest.raises(RuntimeError, match="unplugged"):
        JUPAD(scratch_dir=tmp_path).fit_blocks(blocks)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_one_sentence(tmp_path, monkeypatch):
    class Full:
        def write(self, _data):
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self):
            pass

    monkeypatch.setattr(store, "MEMORY_BYTES", 5)
    monkeypatch.setattr(store, "TemporaryFile", lambda **_: Full())
    with pytest.raises(StorageError, match=r"No space left on device.*give scratch_dir a folder"):
        JUPAD(scratch_dir=tmp_path).fit(guise("blocks", arrow(), tmp_path))


def test_a_missing_scratch_folder_is_refused_before_any_work(tmp_path):
    def blocks():
        raise AssertionError("read")

    with pytest.raises(StorageError, match="Give scratch_dir a folder that exists"):
        JUPAD(scratch_dir=tmp_path / "nowhere").fit_blocks(blocks)


def test_a_scratch_file_that_cannot_be_made_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "MEMORY_BYTES", 5)
    source = as_source(arrow())
    schema = source.profile().schema()
    coded = source.coded(schema, source.profile().axes(schema, 8), tmp_path / "none")
    with pytest.raises(StorageError, match="Give scratch_dir a folder that exists"), coded:
        pass
