"""Numerical helpers against slow versions in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.testing import assert_allclose

from jointwise._numerics import integrate, log_dot, narrowed, smallest_true


def log_dot_plain(log_values, weights):
    """log(sum_l exp(V[i, l]) W[l, f]), one entry at a time around its own largest term."""
    out = np.full((len(log_values), weights.shape[1]), -np.inf)
    for i, row in enumerate(log_values):
        for f, column in enumerate(weights.T):
            terms = [v + math.log(w) for v, w in zip(row, column, strict=True) if w > 0 and v > -math.inf]
            if terms:
                top = max(terms)
                out[i, f] = top + math.log(math.fsum(math.exp(t - top) for t in terms))
    return out


LOG_VALUES = st.one_of(st.floats(-2000, 300), st.floats(-1, 1), st.just(-np.inf))
WEIGHTS = st.one_of(st.floats(0, 1), st.just(0.0), st.just(1e-300))


@settings(deadline=None, max_examples=60)
@given(data=st.data(), n=st.integers(1, 5), n_atoms=st.integers(1, 6), n_components=st.integers(1, 4))
def test_log_dot_agrees_with_its_plain_twin(data, n, n_atoms, n_components):
    log_values = data.draw(hnp.arrays(float, (n, n_atoms), elements=LOG_VALUES))
    weights = data.draw(hnp.arrays(float, (n_atoms, n_components), elements=WEIGHTS))
    assert_allclose(log_dot(log_values, weights), log_dot_plain(log_values, weights), rtol=1e-12, atol=1e-12)


def test_log_dot_keeps_what_lies_far_below_the_rows_largest():
    log_values = np.array([[0.0, -5000.0, -np.inf], [-np.inf, -np.inf, -np.inf]])
    weights = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.5, 1.0]])
    expected = [[0.0, -5000.0 + np.log(0.5), -np.inf], [-np.inf] * 3]
    assert_allclose(log_dot(log_values, weights), expected, rtol=1e-15)


def test_log_dot_of_no_rows():
    assert log_dot(np.empty((0, 3)), np.ones((3, 2))).shape == (0, 2)


def test_integrate_takes_a_batch_with_finite_and_infinite_ends():
    rate = np.array([1.0, 2.0, 0.01])
    low, high = np.array([0.0, 0.0, 5.0]), np.array([np.inf, 3.0, 5.0])
    expected = (np.exp(-rate * low) - np.exp(-rate * high)) / rate
    assert_allclose(integrate(lambda x: np.exp(-rate * x), low, high), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("power", [-0.9, -0.5, 0.5, 3.0])
def test_integrate_with_a_singular_end(power):
    assert_allclose(integrate(lambda x: x**power, [0.0], [1.0]), [1 / (power + 1)], rtol=1e-8)


@given(
    hnp.arrays(float, 6, elements=st.floats(-50, 50)), st.floats(0.01, 20), st.sampled_from(["smooth", "step", "both"])
)
def test_narrowed_brackets_hold_the_root(root, slope, kind):
    def f(at, x):
        y = x - root[at]
        smooth = np.tanh(slope * y) if kind != "step" else 0.0
        return smooth + (np.where(y >= 0, 0.5, -0.5) if kind != "smooth" else 0.0)

    low, high = narrowed(f, np.full(6, -60.0), np.full(6, 70.0))
    every = np.arange(6)
    expected = smallest_true(lambda x: f(every, x) >= 0, np.full(6, -60.0), np.full(6, 70.0))
    assert ((low <= expected) & (expected <= high)).all()
    assert (f(every, high) >= 0).all()
    assert_allclose(high, expected, atol=1e-9)


def test_narrowed_brackets_without_a_root_inside():
    low, high = narrowed(lambda at, x: x - np.array([-1.0, 2.0])[at], np.zeros(2), np.ones(2))
    assert_allclose([low, high], [[0.0, 1.0], [0.0, 1.0]])
