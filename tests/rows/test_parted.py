"""PartedRows: any cut into parts gives the column counts, pairs, rows and posterior counts of the whole."""

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines import tree_cases

from jointwise import engines
from jointwise.axes import BinnedAxis
from jointwise.engines.blocks import BlockComponents, BlockLayout
from jointwise.engines.compiled import CompiledEngine
from jointwise.exceptions import InputError
from jointwise.rows import parted as parted_module
from jointwise.rows.coded import CodedRows
from jointwise.rows.parted import Part, PartedRows, Parts
from jointwise.tables.variables import Schema, Variable


class Listed(Parts):
    """The simplest parts: a list in memory."""

    def __init__(self, arrays):
        self.arrays = arrays
        self.n_passes = 0

    def total(self, statistic):
        self.n_passes += 1
        return reduce(add, map(statistic, self.arrays))

    def each(self, function, arguments):
        return [function(part, own) for part, own in zip(self.arrays, arguments, strict=True)]

    @property
    def lengths(self):
        return [len(part.codes) for part in self.arrays]


def coded(n, n_bins, seed=0, *, weighted=False):
    """Return rows of random codes, some missing, with weights whose sums are exact."""
    rng = np.random.default_rng(seed)
    schema = Schema(tuple(Variable(f"v{k}", "continuous") for k in range(len(n_bins))), "numpy")
    axes = tuple(BinnedAxis(np.arange(bins - 1.0)) for bins in n_bins)
    codes = np.stack([rng.integers(0, bins + 1, n) for bins in n_bins], axis=1)
    weights = rng.integers(0, 9, n) / 4 if weighted else None
    return CodedRows(schema, axes, codes.astype(np.uint8), weights)


def parted(rows, places):
    bounds = [0, *sorted(places), len(rows)]
    weighted = rows.weights is not None
    cuts = [Part(rows.codes[a:b], rows.weights[a:b] if weighted else None) for a, b in pairwise(bounds)]
    return PartedRows(rows.schema, rows.axes, Listed(cuts), weighted=weighted)


def factors(rows, n_components=3, seed=1):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.1, 2.0, (sum(rows.n_bins), n_components)), rng.dirichlet(np.ones(n_components))


@given(
    n=st.integers(1, 40),
    places=st.lists(st.integers(0, 40), max_size=6),
    n_bins=st.lists(st.integers(2, 5), min_size=1, max_size=3),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
)
@settings(max_examples=80)
def test_any_cut_gives_the_same_values(n, places, n_bins, seed, weighted):
    whole = coded(n, n_bins, seed, weighted=weighted)
    rows = parted(whole, [min(place, n) for place in places])
    assert (len(rows), rows.n_rows) == (n, whole.n_rows)
    for k, margin in enumerate(whole.column_counts):
        assert np.array_equal(rows.marginal(k), margin)
    assert rows.pairs() == whole.pairs()
    chosen = np.flatnonzero(np.random.default_rng(seed).random(n) < 0.5)
    assert np.array_equal(rows.take(chosen).codes, whole.take(chosen).codes)
    assert np.array_equal(rows.take(chosen).weights, whole.take(chosen).weights)
    a, b = (each.engine().posterior_counts(*factors(whole)) for each in (rows, whole))
    np.testing.assert_allclose(a.counts, b.counts, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(a.totals, b.totals, rtol=1e-10)
    np.testing.assert_allclose(a.log_likelihood, b.log_likelihood, rtol=1e-10, atol=1e-10)
    first, second = rows.canonical(), whole.canonical()
    assert np.array_equal(first.codes, second.codes)
    assert np.array_equal(first.weights, second.weights)


def test_margins_of_all_columns_take_one_pass():
    rows = parted(coded(30, [3, 4, 2]), [10, 20])
    for n in range(3):
        rows.marginal(n)
    assert rows._parts.n_passes == 1


def test_a_whole_part_is_asked_for_without_a_list_of_its_rows():
    rows = parted(coded(30, [3, 4]), [10])
    asked = []
    each = rows._parts.each
    rows._parts.each = lambda function, own: asked.extend(own) or each(function, own)
    rows.take(np.arange(12))
    assert asked[0] == slice(None)
    assert asked[1].tolist() == [0, 1]


def test_large_parts_are_compiled_and_agree():
    whole = coded(40_000, [5, 7, 4])
    rows = parted(whole, [17_000])
    a, b = (each.engine().posterior_counts(*factors(whole)) for each in (rows, whole))
    np.testing.assert_allclose(a.counts, b.counts, rtol=1e-10)


def test_a_part_of_any_size_runs_in_one_thread(monkeypatch):
    whole = coded(200_000, [5, 7, 4])
    made = []

    def recorded(*args, **kwargs):
        made.append(engines.posterior_engine(*args, **kwargs))
        return made[-1]

    monkeypatch.setattr(parted_module, "posterior_engine", recorded)
    n_threads = []

    def counted(task, n_tasks, at_most):
        n_threads.append(min(n_tasks, at_most))
        return [task(number) for number in range(n_tasks)]

    monkeypatch.setattr("jointwise.engines.compiled.in_threads", counted)
    parted(whole, []).engine().posterior_counts(*factors(whole, n_components=8))
    assert [type(engine) for engine in made] == [CompiledEngine]
    assert n_threads == [1]


def test_parts_side_by_side_in_threads_give_the_same_bits():
    whole = coded(200_000, [5, 7, 4])
    tables, mixing = factors(whole, n_components=8)
    read_only = whole.codes.view()
    read_only.flags.writeable = False
    ready = threading.Barrier(4)

    def one_pass(part):
        ready.wait(30)
        return parted_module._posterior_counts(part, whole.n_bins, tables, mixing)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one_pass, [Part(whole.codes), Part(read_only)] * 2))
    for each in found[1:]:
        assert np.array_equal(each.counts, found[0].counts)
        assert each.log_likelihood == found[0].log_likelihood


@given(
    n=st.integers(1, 40),
    places=st.lists(st.integers(0, 40), max_size=6),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_any_cut_gives_the_same_block_sums_and_coarser_codes(n, places, seed, weighted):
    whole = coded(n, [5, 4, 3], seed, weighted=weighted)
    rows = parted(whole, [min(place, n) for place in places])
    layout, components = block_of(whole)
    a, b = (each.block_engine(layout).sums(components) for each in (rows, whole))
    np.testing.assert_allclose(a.totals, b.totals, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(a.seconds, b.seconds, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(a.counts[0], b.counts[0], rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(a.log_likelihood, b.log_likelihood, rtol=1e-10, atol=1e-10)
    axes = (BinnedAxis([1.0]), BinnedAxis([0.0, 2.0]), whole.axes[2])
    fewer, expected = rows.regrouped(axes), whole.regrouped(axes)
    assert (len(fewer), fewer.n_rows, fewer.axes) == (n, whole.n_rows, axes)
    assert fewer.pairs() == expected.pairs()
    chosen = np.arange(0, n, 2)
    assert np.array_equal(fewer.take(chosen).codes, expected.take(chosen).codes)
    assert fewer.take(chosen).codes.dtype == expected.codes.dtype


def test_large_parts_of_a_block_side_by_side_give_the_same_bits():
    whole = coded(60_000, [200, 180, 4])
    layout, components = block_of(whole)
    read_only = whole.codes.view()
    read_only.flags.writeable = False
    ready = threading.Barrier(4)

    def one_pass(part):
        ready.wait(30)
        return parted_module._block_sums(part, layout, components)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one_pass, [Part(whole.codes), Part(read_only)] * 2))
    for each in found:
        assert np.array_equal(each.seconds, found[0].seconds)
        assert each.log_likelihood == found[0].log_likelihood
    # in one thread or in all
    assert whole.block_engine(layout).sums(components).log_likelihood == found[0].log_likelihood


@given(
    n=st.integers(1, 40),
    places=st.lists(st.integers(0, 40), max_size=6),
    seed=st.integers(0, 99),
    weighted=st.booleans(),
)
@settings(deadline=None, max_examples=40)
def test_any_cut_gives_the_same_sums_of_trees(n, places, seed, weighted):
    whole = coded(n, [5, 4, 3], seed, weighted=weighted)
    rows = parted(whole, [min(place, n) for place in places])
    components, pairs = trees_of(whole, seed), tree_cases.all_pairs(3)
    a, b = (each.tree_engine() for each in (rows, whole))
    tree_cases.assert_close(a.edge_sums(components), b.edge_sums(components))
    tree_cases.assert_close(a.pair_sums(components, pairs), b.pair_sums(components, pairs))


def test_large_parts_of_trees_side_by_side_give_the_same_bits():
    whole = coded(60_000, [20, 8, 4])
    components, pairs = trees_of(whole), tree_cases.all_pairs(3)
    read_only = whole.codes.view()
    read_only.flags.writeable = False
    ready = threading.Barrier(4)

    def one_pass(part):
        ready.wait(30)
        edges = parted_module._tree_edge_sums(part, components)
        return edges.edges, parted_module._tree_pair_sums(part, components, pairs).pairs

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(one_pass, [Part(whole.codes), Part(read_only)] * 2))
    engine = whole.tree_engine()  # in one thread or in all
    found.append((engine.edge_sums(components).edges, engine.pair_sums(components, pairs).pairs))
    for edges, counts in found[1:]:
        assert np.array_equal(edges, found[0][0])
        assert np.array_equal(counts, found[0][1])


def test_trees_and_pairs_of_other_rows_are_refused_before_any_part_is_asked():
    rows, components = parted(coded(9, [5, 4, 2]), []), trees_of(coded(9, [5, 4, 3]))
    with pytest.raises(InputError, match="other states"):
        rows.tree_engine().edge_sums(components)
    with pytest.raises(InputError, match="other states"):
        rows.tree_engine().pair_sums(components, tree_cases.all_pairs(3))
    with pytest.raises(InputError, match="i < j below 3"):
        rows.tree_engine().pair_sums(trees_of(rows), np.array([[1, 3]]))
    assert rows._parts.n_passes == 0


def trees_of(rows, seed=2):
    rng = np.random.default_rng(seed)
    return tree_cases.make_components(rng, tree_cases.make_forest(rng, rows.n_bins, 3))


def test_a_layout_of_other_rows_is_refused():
    layout, _ = block_of(coded(9, [5, 4, 3]))
    with pytest.raises(InputError, match="other axes"):
        parted(coded(9, [5, 4, 2]), []).block_engine(layout)


def block_of(rows, n_components=3, seed=2):
    """Return a layout of the first columns as a block, the second with a spike, and components."""
    rng = np.random.default_rng(seed)
    layout = BlockLayout(
        rows.n_bins, [0, 1], [np.linspace(-1, 1, rows.n_bins[0]), np.linspace(-1, 1, rows.n_bins[1] - 1)], [2]
    )
    return layout, BlockComponents(
        np.log(rng.dirichlet(np.ones(n_components))),
        rng.normal(size=(n_components, 2)),
        np.stack([np.eye(2) + 0.3] * n_components),
        [np.log(rng.dirichlet(np.ones(bins), n_components).T) for bins in layout.table_bins],
        [np.log(rng.dirichlet(np.ones(1 + n), n_components).T) for n in layout.n_spikes],
    )


def test_rows_elsewhere_have_no_card():
    with pytest.raises(InputError, match="needs the rows on this machine"):
        parted(coded(9, [2]), []).on("cuda")
