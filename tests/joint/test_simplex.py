"""Probabilities are copied, unless nobody can write to them and they are right already."""

import numpy as np

from jointwise.joint.simplex import simplex


def test_what_may_still_be_written_to_is_copied():
    values = np.array([0.25, 0.75])
    view = values.view()
    view.flags.writeable = False
    for given in (values, view):
        found = simplex(given, "weights", 1)
        assert not np.shares_memory(found, values)
        assert not found.flags.writeable
        assert np.array_equal(found, values)


def test_what_is_locked_stays_as_it_is_if_its_sum_is_one():
    right, rough = np.array([0.25, 0.75]), np.array([0.25, 0.75 + 1e-8])
    for values in (right, rough):
        values.flags.writeable = False
    assert simplex(right, "weights", 1) is right
    found = simplex(rough, "weights", 1)
    assert found is not rough
    assert abs(found.sum() - 1) < 1e-15
    assert not found.flags.writeable
    assert rough[1] == 0.75 + 1e-8
