"""The language of questions: what it means, and where mistakes are shown."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.cli.language import bind, parse_conditions, parse_question
from jointwise.exceptions import QuestionError
from jointwise.joint.events import Interval, Point, Values
from jointwise.tables.variables import Schema, Variable

SCHEMA = Schema(
    (
        Variable("sex", "categorical", categories=("F", "M"), dtype="string"),
        Variable("age", "integer", dtype="int64"),
        Variable("pay", "continuous"),
        Variable("two words", "continuous"),
        Variable("size", "categorical", categories=("S", "M", "L"), ordered=True, dtype="string"),
        Variable("rooms", "categorical", categories=(1, 2, 3), dtype="int64"),
        Variable("day", "continuous", dtype="date"),
        Variable("in", "categorical", categories=(False, True), dtype="bool"),
    )
)
INF = np.inf


def bound(text):
    return bind(parse_question(text), SCHEMA)


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("sex=F", Point(0.0)),
        ("sex != F", Values((1.0,))),
        ("sex in {F, 'M'}", Values((0.0, 1.0))),
        ("age=40", Point(40.0)),
        ("age > 40", Interval(41.0, INF)),
        ("age >= 40", Interval(40.0, INF)),
        ("age < 40.5", Interval(-INF, 40.0)),
        ("age<=40", Interval(-INF, 40.0)),
        ("age in 30..40", Interval(30.0, 40.0)),
        ("age in -5..", Interval(-5.0, INF)),
        ("age in ..40", Interval(-INF, 40.0)),
        ("age > 30, age < 35", Interval(31.0, 34.0)),
        ("pay > 1.5", Interval(np.nextafter(1.5, INF), INF)),
        ("pay < 1e3", Interval(-INF, np.nextafter(1000.0, -INF))),
        ("pay in 1.5..2.5", Interval(1.5, 2.5)),
        ('"two words" >= 1', Interval(1.0, INF)),
        ("two words in 1..2", Interval(1.0, 2.0)),
        ("'in' = false", Point(0.0)),
        ("size > S", Interval(1.0, INF)),
        ("size <= M", Interval(-INF, 1.0)),
        ("rooms=2", Point(1.0)),
        ("rooms = 2.0", Point(1.0)),
        ("day in 1970-01-02..1970-01-11", Interval(1.0, 10.0)),
        ("in = true", Point(1.0)),
    ],
)
def test_conditions(text, region):
    (found,) = bind(parse_conditions(text), SCHEMA).given.values()
    assert found == region


def test_names_conditions_and_probabilities():
    question = bound("pay, age | sex=F, age in 30..40")
    assert question.names == ("pay", "age")
    assert question.given == {"sex": Point(0.0), "age": Interval(30.0, 40.0)}
    event = bound("P(pay > 3, sex=F | age <= 40)")
    assert (event.names, set(event.asked), set(event.given)) == ((), {"sex", "pay"}, {"age"})
    assert bound("P(pay | sex=F)").names == ("pay",)
    assert bound("P (pay)").names == ("pay",)
    assert bound("two words, pay").names == ("two words", "pay")


def test_a_variable_may_be_called_p_or_hold_quotes():
    schema = Schema((Variable("P", "continuous"), Variable('a"b', "categorical", categories=("it's",), dtype="string")))
    assert bind(parse_question("P"), schema).names == ("P",)
    assert bind(parse_question("""P | "a\\"b"='it\\'s'"""), schema).given == {'a"b': Point(0.0)}


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("", 0, "name of a variable"),
        ("pay |", 5, "name of a variable"),
        ("pay sex", 0, "Unknown variable 'pay sex'"),
        ("pay 'sex'", 4, "a comma, a bar or the end"),
        ("pay > 3", 4, "write P"),
        ("P(pay > 3", 9, "closing bracket"),
        ("P(pay > 3) x", 11, "should end here"),
        ("pay | sex", 9, "Say what 'sex' should be"),
        ("pay | age in 5", 14, "two dots"),
        ("pay | age in ..", 15, "needs an end"),
        ("pay | sex in {F", 15, "closing brace"),
        ('pay | "sex', 6, "quote is not closed"),
        ("pay | sex ! F", 10, "no meaning"),
        ("pay | sx=F", 6, "did you mean 'sex'"),
        ("wage", 0, "Unknown variable"),
        ("pay | sex=X", 10, "Unknown category"),
        ("pay | rooms in {1, 9}", 19, "Unknown category"),
        ("pay | age = old", 12, "takes numbers"),
        ("pay | day > soon", 12, "dates"),
        ("pay | sex > F", 12, "without an order"),
        ("pay | size > L", 13, "no category beyond"),
        ("pay | age in 40..30", 13, "wrong way round"),
        ("pay | age != 3", 13, "range"),
        ("pay | age > 40, age < 30", 16, "No value"),
        ("pay | sex=F, sex=M", 13, "do not make a range"),
        ("pay | age = nan", 12, "missing"),
        ("pay, pay", 0, "twice"),
        ("sex | sex=F", 0, "nothing is left to ask"),
        ("P(sex=F | sex=F)", 2, "nothing is left to ask"),
    ],
)
def test_mistakes_are_shown_with_their_place(text, at, words):
    with pytest.raises(QuestionError) as caught:
        bound(text)
    sentence, line, caret = str(caught.value).split("\n")
    assert words in sentence
    assert line == f"  {text}"
    assert caret == " " * (at + 2) + "^"


@given(st.text(max_size=40))
@settings(max_examples=60)
def test_any_text_is_read_or_refused(text):
    with suppress(QuestionError):
        assert bound(text)


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda s: s.strip() == s), min_size=2, max_size=2, unique=True))
@settings(max_examples=60)
def test_every_name_and_value_can_be_asked_for_in_quotes(texts):
    name, value = texts
    schema = Schema((Variable(name, "categorical", categories=(value, value + "x"), dtype="string"),))
    quoted = ['"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts]
    assert bind(parse_question(f"P({quoted[0]}={quoted[1]})"), schema).asked == {name: Point(0.0)}


def test_a_long_question_is_shown_around_its_place():
    with pytest.raises(QuestionError) as error:
        parse_question("a" * 10 + "," * 20_000)
    assert len(str(error.value)) < 600
    _, line, mark = str(error.value).splitlines()
    assert line[mark.index("^")] == ","
