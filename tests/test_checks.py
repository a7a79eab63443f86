"""Argument checks."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise._checks import (
    check_choice,
    check_integer,
    check_real,
    check_weights,
    listed,
    read_only,
    unknown_name,
)
from jointwise.exceptions import InputError, UnknownNameError


def test_unknown_name_lists_known_names_and_hints():
    error = unknown_name("variable", "hieght", ["height", "weight"])
    assert isinstance(error, UnknownNameError)
    assert isinstance(error, KeyError)
    assert "did you mean 'height'?" in str(error)
    assert "'weight'" in str(error)
    assert "did you mean" not in str(unknown_name("variable", "zzz", ["height"]))


def test_long_lists_are_cut_short():
    text = listed(range(1000))
    assert "(1000 in all)" in text
    assert text.count(",") == 10


def test_choice():
    check_choice("rule", "a", ("a", "b"))
    for wrong in ("c", 3, None, ["a"]):
        with pytest.raises(InputError, match="`rule` must be one of 'a', 'b'"):
            check_choice("rule", wrong, ("a", "b"))


@pytest.mark.parametrize("wrong", [0, 1.0, "2", None, True])
def test_integer_refuses(wrong):
    with pytest.raises(InputError, match="`n` must be an integer of at least 1"):
        check_integer("n", wrong, 1)


def test_integer_and_real_accept_numpy_scalars():
    assert check_integer("n", np.int32(3), 1) == 3
    assert type(check_integer("n", np.int32(3), 1)) is int
    assert check_real("x", np.float32(0.5)) == 0.5


@pytest.mark.parametrize("wrong", [np.inf, np.nan, "1", None, False])
def test_real_refuses(wrong):
    with pytest.raises(InputError, match="`x` must be a finite number"):
        check_real("x", wrong)


def test_weights():
    assert check_weights(None, 3) is None
    np.testing.assert_array_equal(check_weights([1, 2, 0], 3), [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(check_weights(2, 3), [2.0, 2.0, 2.0])
    for wrong in ([1, 2], [[1, 2, 3]], [1, 2, -1], [1, 2, np.nan], [1, 2, np.inf], ["a", "b", "c"]):
        with pytest.raises(InputError, match="sample_weight"):
            check_weights(wrong, 3)


def test_read_only_leaves_the_callers_array_writable():
    mine = np.arange(3.0)
    theirs = read_only(mine)
    mine[0] = 7.0
    assert theirs[0] == 0.0
    with pytest.raises(ValueError, match="read-only"):
        theirs[0] = 1.0
