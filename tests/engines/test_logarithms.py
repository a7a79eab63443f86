"""Sums of logarithms, against those of the C library."""

import numpy as np

from jointwise.engines.logarithms import weighted_logs


def test_each_logarithm_is_right_to_two_units_in_the_last_place():
    rng = np.random.default_rng(0)
    tiny, largest = np.finfo(float).tiny, np.finfo(float).max
    edges = [tiny, 1e-290, np.sqrt(0.5), 1.0, np.nextafter(1.0, 0), np.nextafter(1.0, 2), np.sqrt(2), 2.0, largest]
    values = np.concatenate([edges, np.exp(rng.uniform(-660, 700, 2000)), rng.uniform(0.5, 2.0, 2000)])
    for value in values:
        found = weighted_logs(np.array([value]), np.ones(1), np.empty(1))
        # its own logarithm may be wrong in the last place, and so may the other
        assert abs(found - np.log(value)) <= 2 * np.spacing(abs(np.log(value)))


def test_a_sum_is_weighted():
    rng = np.random.default_rng(1)
    for n in (0, 1, 7, 40, 1001):
        values, weights = rng.random(n), rng.normal(size=n)
        expected = weights @ np.log(values)
        found = weighted_logs(values.copy(), weights, np.empty(n))
        # rounding of a sum of n terms of both signs
        np.testing.assert_allclose(
            found, expected, rtol=0, atol=1e-15 * (1 + n) * (1 + np.abs(np.log(values)).max(initial=0))
        )
