"""The pass on a card: against the plain engine where there is a card, and sentences where there is none."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from jointwise import JUPAD
from jointwise.engines import ReferenceEngine, posterior_engine
from jointwise.engines.cuda import check_cuda
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


@pytest.mark.skipif(has_card(), reason="there is a card")
def test_without_a_card_it_says_what_is_missing():
    missing = find_spec("torch") is None or find_spec("triton") is None
    expected = (MissingDependencyError, r"jointwise\[gpu\]") if missing else (DeviceError, "no NVIDIA card")
    with pytest.raises(expected[0], match=expected[1]):
        JUPAD(device="cuda").fit(np.zeros((5, 2)))
