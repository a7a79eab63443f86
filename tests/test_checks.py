"""Argument checks."""

from __future__ import annotations

import numpy as np
import pytest

from jointwise._checks import (
    cause,
    check_choice,
    check_integer,
    check_real,
    check_weights,
    listed,
    read_only,
    reading,
    shown,
    unknown_name,
)
from jointwise.exceptions import FileFormatError, InputError, UnknownNameError


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


LONG = "n" * 1_000_000


@pytest.mark.parametrize(
    "value",
    [LONG, [LONG] * 1000, {LONG: {LONG: [LONG] * 50}}, 10**10_000, -(10**10_000), np.zeros(10**6), LONG.encode(),
     np.str_(LONG), [[[[list(range(100))] * 100] * 100] * 100]],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_long_values_are_cut_short(value):
    assert len(shown(value)) < 400


def test_what_is_short_is_shown_as_it_is():
    for value in ("age", "", 3, -2.5, None, True, ("a", 1), {"b": 2.0}, {1}, [None, "x"], "\ud800", "a\nb"):
        assert shown(value) == repr(value)


def test_messages_stay_short_with_long_names():
    for error in (unknown_name("variable", LONG, [LONG + str(n) for n in range(50)]),):
        assert len(str(error)) < 1000
    for check in (
        lambda: check_choice("rule", LONG, ("a", "b")),
        lambda: check_integer("n", LONG, 1),
        lambda: check_real("x", LONG),
        lambda: check_weights([LONG], 1),
    ):
        with pytest.raises(InputError) as caught:
            check()
        assert len(str(caught.value)) < 1000


def test_causes_are_short_sentences_without_their_full_stop():
    assert cause(ValueError("wrong.")) == "wrong"
    assert cause(KeyError("kind")) == "'kind' is not there"
    assert cause(KeyError()) == "None is not there"
    assert cause(unknown_name("variable", "x", ["y"])) == "Unknown variable 'x'. Known: 'y'"
    assert len(cause(ValueError(LONG))) < 600


def test_reading_makes_one_error_of_many():
    for error in (KeyError("a"), TypeError("b"), OverflowError("c"), RecursionError("d"), InputError("e.")):
        with pytest.raises(FileFormatError, match=r"^Not a thing: .*[a-z]\.$"), reading("a thing"):
            raise error
    with pytest.raises(FileFormatError, match=r"^inner$"), reading("a thing"):
        raise FileFormatError("inner")
    with pytest.raises(ZeroDivisionError), reading("a thing"):
        raise ZeroDivisionError


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
