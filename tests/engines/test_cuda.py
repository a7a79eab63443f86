"""The passes on a card against the plain ones, and clear errors without a card."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from tests.engines import tree_cases
from tests.engines.block_cases import assert_close, make_codes, make_components, make_layout

from jointwise import JUPAD
from jointwise.datasets import laplacians
from jointwise.engines import ReferenceEngine, cuda, pair_counts, posterior_engine
from jointwise.engines.blocks import block_engine
from jointwise.engines.blocks import cuda as block_cuda
from jointwise.engines.cuda import check_cuda
from jointwise.engines.trees import cuda as tree_cuda
from jointwise.engines.trees import tree_engine
from jointwise.exceptions import DeviceError, MissingDependencyError


def has_card():
    try:
        check_cuda()
    except (DeviceError, MissingDependencyError):
        return False
    return True


card = pytest.mark.skipif(not has_card(), reason="needs an NVIDIA card, PyTorch and triton")


@card
@pytest.mark.parametrize(
    ("n", "n_bins", "rank", "dtype"),
    [
        (0, [4, 2], 3, np.uint8),
        (1, [3], 1, np.uint8),
        (5000, [7, 255, 2], 5, np.uint8),
        (5000, [900] * 4, 33, np.uint16),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_pass_agrees_with_the_plain_engine(n, n_bins, rank, dtype, weighted):
    """Logarithms in float32 err by 1e-7 of their size, sums of some thousand terms by little more."""
    rng = np.random.default_rng(0)
    codes = np.column_stack([rng.integers(0, bins + 1, n) for bins in n_bins]).astype(dtype)
    tables, mixing = rng.gamma(1.0, size=(sum(n_bins), rank)) + 1e-6, rng.dirichlet(np.ones(rank))
    weights = rng.gamma(1.0, size=n) if weighted else None
    found, plain = (
        engine.posterior_counts(tables, mixing)
        for engine in (posterior_engine(codes, n_bins, weights, "cuda"), ReferenceEngine(codes, n_bins, weights))
    )
    np.testing.assert_allclose(found.counts, plain.counts, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.totals, plain.totals, rtol=1e-5, atol=1e-5)
    assert found.log_likelihood == pytest.approx(plain.log_likelihood, rel=1e-6, abs=1e-4)


@card
@pytest.mark.parametrize(
    ("n", "n_bins", "dtype"), [(0, [4, 2], np.uint8), (70_001, [2, 255, 7, 2], np.uint8), (5000, [900, 3], np.uint16)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_pair_counts_agree_with_the_plain_ones(n, n_bins, dtype, weighted):
    rng = np.random.default_rng(1)
    codes = np.column_stack([rng.integers(0, bins + 1, n) for bins in n_bins]).astype(dtype)
    weights = rng.gamma(1.0, size=n) if weighted else None
    found, plain = (pair_counts(codes, n_bins, weights, device) for device in ("cuda", "cpu"))
    assert found.dtype == plain.dtype
    np.testing.assert_allclose(found, plain, rtol=1e-6 if weighted else 0, atol=1e-6 if weighted else 0)


@card
def test_codes_that_do_not_fit_are_sent_block_by_block(monkeypatch):
    """Codes sent in blocks of unequal length, with weights, give the same sums as codes that stay on the card."""
    rng = np.random.default_rng(2)
    n_bins, n = [7, 255, 2], 10_007
    codes = np.column_stack([rng.integers(0, bins + 1, n) for bins in n_bins]).astype(np.uint8)
    codes.setflags(write=False)
    tables, mixing = rng.gamma(1.0, size=(sum(n_bins), 5)) + 1e-6, rng.dirichlet(np.ones(5))
    weights = rng.gamma(1.0, size=n)
    whole = posterior_engine(codes, n_bins, weights, "cuda").posterior_counts(tables, mixing)
    monkeypatch.setattr(cuda, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(cuda, "STREAM_ROWS", 3000)
    engine = posterior_engine(codes, n_bins, weights, "cuda")
    for _ in range(2):  # every pass sends them again
        sent = engine.posterior_counts(tables, mixing)
        np.testing.assert_allclose(sent.counts, whole.counts, rtol=1e-5)
        assert sent.log_likelihood == pytest.approx(whole.log_likelihood, rel=1e-7)
    assert np.array_equal(pair_counts(codes, n_bins, None, "cuda"), pair_counts(codes, n_bins))


@card
@pytest.mark.parametrize(
    ("d", "F", "spikes", "missing", "n_intervals"),
    [(1, 1, 0, 0.0, 40), (3, 5, 2, 0.1, 40), (7, 10, 0, 0.0, 60_000), (13, 3, 1, 0.2, 300), (0, 2, 0, 0.1, 40)],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_a_block_agree_with_the_plain_engine(d, F, spikes, missing, n_intervals, weighted):
    """All in float64: only the order of additions differs."""
    rng = np.random.default_rng(d)
    layout = make_layout(rng, d, 2, spikes, n_intervals)
    codes, components = make_codes(rng, layout, 20_011, missing), make_components(rng, layout, F)
    weights = rng.gamma(1.0, size=len(codes)) if weighted else None
    found, plain = (block_engine(codes, layout, weights, device).sums(components) for device in ("cuda", "cpu"))
    assert_close(found, plain, 1e-8)


@card
def test_blocks_of_rows_that_do_not_fit_are_sent_one_by_one(monkeypatch):
    rng = np.random.default_rng(0)
    layout = make_layout(rng, 4, 2, spikes=1)
    codes, components = make_codes(rng, layout, 10_007, 0.1), make_components(rng, layout, 3)
    weights = rng.gamma(1.0, size=len(codes))
    monkeypatch.setattr(cuda, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(cuda, "STREAM_ROWS", 3000)
    monkeypatch.setattr(block_cuda, "BATCH_BYTES", 1 << 20)
    engine = block_engine(codes, layout, weights, "cuda")
    for _ in range(2):
        assert_close(engine.sums(components), block_engine(codes, layout, weights).sums(components), 1e-8)


@card
@pytest.mark.parametrize(
    ("n_bins", "F", "missing"),
    [([2] * 20, 12, 0.0), ([2] * 20, 3, 0.1), ([16] * 6, 4, 0.05), ([300, 5, 2], 2, 0.3), ([4], 1, 0.5)],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_sums_of_trees_agree_with_those_of_the_processor(monkeypatch, n_bins, F, missing, weighted):
    """All in float64: only the order of additions differs. Rows are in several blocks and batches."""
    rng = np.random.default_rng(F)
    components = tree_cases.make_components(rng, tree_cases.make_forest(rng, n_bins, F))
    codes = tree_cases.make_codes(rng, n_bins, 5_003, missing)
    weights = rng.gamma(1.0, size=len(codes)) if weighted else None
    monkeypatch.setattr(cuda, "RESIDENT_SHARE", 0.0)
    monkeypatch.setattr(cuda, "STREAM_ROWS", 3000)
    monkeypatch.setattr(tree_cuda, "BATCH_BYTES", 1 << 24)
    found, plain = (tree_engine(codes, n_bins, weights, device) for device in ("cuda", "cpu"))
    pairs = tree_cases.all_pairs(len(n_bins))
    for _ in range(2):
        tree_cases.assert_close(found.edge_sums(components), plain.edge_sums(components), 1e-8)
        tree_cases.assert_close(found.pair_sums(components, pairs), plain.pair_sums(components, pairs), 1e-8)


@card
@pytest.mark.parametrize("settings", [{}, {"method": "pairs", "n_components": 3}])
def test_a_whole_fit_on_the_card_is_that_of_the_cpu(settings):
    """Float32 sums change the steps a little; the density must be as good on fresh rows."""
    truth = laplacians(rng=0)
    rows, fresh = truth.sample(3000, rng=1), truth.sample(3000, rng=2)
    on_card, plain = (JUPAD(device=d, random_state=0, **settings).fit(rows) for d in ("cuda", "cpu"))
    assert on_card.score(fresh) == pytest.approx(plain.score(fresh), abs=0.02)


@pytest.mark.skipif(has_card(), reason="there is a card")
def test_without_a_card_it_says_what_is_missing():
    missing = find_spec("torch") is None or find_spec("triton") is None
    expected = (MissingDependencyError, r"jointwise\[gpu\]") if missing else (DeviceError, "needs an NVIDIA card")
    with pytest.raises(expected[0], match=expected[1]):
        JUPAD(device="cuda").fit(np.zeros((5, 2)))
