"""The language of questions: what it means, and where mistakes are shown."""

import re
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jointwise.exceptions import QuestionError
from jointwise.joint.events import AnyOf, Interval, Point, Values
from jointwise.joint.language import parse_conditions, parse_question
from jointwise.joint.questions import question_text
from jointwise.joint.scanner import MOST_CHARACTERS
from jointwise.tables.variables import Schema, Variable

SCHEMA = Schema(
    (
        Variable("sex", "categorical", categories=("F", "M"), dtype="string"),
        Variable("age", "integer", dtype="int64"),
        Variable("pay", "continuous", observed=(-50.0, 400.0)),
        Variable("two words", "continuous", observed=(0.0, 1.0)),
        Variable("size", "categorical", categories=("S", "M", "L"), ordered=True, dtype="string"),
        Variable("rooms", "categorical", categories=(1, 2, 3), dtype="int64"),
        Variable("day", "continuous", dtype="date"),
        Variable("in", "categorical", categories=(False, True), dtype="bool"),
        Variable("price", "continuous", step=0.25),
        Variable(
            "state", "categorical", categories=("CA", "IN", "OR", "A&B", "a or b", "O'Hara", "<1"), dtype="string"
        ),
        Variable("hit", "integer", observed=(0, 1)),
        Variable("time", "continuous", dtype="datetime[us]"),
    )
)
INF = np.inf
UP, DOWN = np.nextafter(1.5, INF), np.nextafter(1.5, -INF)


def asked(text):
    return parse_question(text, SCHEMA)


@pytest.mark.parametrize(
    ("text", "step", "read"),
    [
        ("P(x > 6)", 1e-6, "P(x > 6)"),
        ("P(5 < x < 6)", 0.001, "P(5 < x < 6)"),
        ("P(x >= 6.5)", 1e-6, "P(x >= 6.5)"),
        ("P(x > 6)", 0.01, "P(x >= 6.01)"),
        ("P(x <= 6)", 0.001, "P(x <= 6)"),
    ],
)
def test_ends_of_finely_rounded_columns_are_written_as_they_were_asked(text, step, read):
    schema = Schema((Variable("x", "continuous", step=step),))
    asked = parse_question(text, schema)
    assert question_text(asked, schema) == read
    assert parse_question(read, schema) == asked


@pytest.mark.parametrize(
    ("text", "region"),
    [
        ("sex=F", Point(0.0)),
        ("sex == f", Point(0.0)),
        ("sex is F", Point(0.0)),
        ("sex is not F", Point(1.0)),
        ("sex != F", Point(1.0)),
        ("size in {S, 'M'}", Values((0.0, 1.0))),
        ("size in (S, M)", Values((0.0, 1.0))),
        ("size in [S, M]", Values((0.0, 1.0))),
        ("size not in {S}", Values((1.0, 2.0))),
        ("size = S or L", Values((0.0, 2.0))),
        ("size=S or size = L", Values((0.0, 2.0))),
        ("not size = S", Values((1.0, 2.0))),
        ("S < size", Values((1.0, 2.0))),
        ("S <= size < L", Values((0.0, 1.0))),
        ("size in S..M", Values((0.0, 1.0))),
        ("age=40", Point(40.0)),
        ("age > 40", Interval(41.0, INF)),
        ("age >= 40", Interval(40.0, INF)),
        ("age => 40", Interval(40.0, INF)),
        ("age ≥ 40", Interval(40.0, INF)),
        ("age < 40.5", Interval(-INF, 40.0)),
        ("age<=40", Interval(-INF, 40.0)),
        ("age in 30..40", Interval(30.0, 40.0)),
        ("age in 30-40", Interval(30.0, 40.0)),
        ("age in 30 to 40", Interval(30.0, 40.0)),
        ("age in >30..<40", Interval(31.0, 39.0)),
        ("age = 30..40", Interval(30.0, 40.0)),
        ("age > 30; age < 35", Interval(31.0, 34.0)),
        ("age < 35?", Interval(-INF, 34.0)),
        ("age between 30 and 40", Interval(30.0, 40.0)),
        ("30 <= age < 40", Interval(30.0, 39.0)),
        ("40 > age >= 30", Interval(30.0, 39.0)),
        ("age in -5..", Interval(-5.0, INF)),
        ("age in ..40", Interval(-INF, 40.0)),
        ("age in -5..-2", Interval(-5.0, -2.0)),
        ("age > 30, age < 35", Interval(31.0, 34.0)),
        ("age > 30 and age < 35", Interval(31.0, 34.0)),
        ("age > 30 & age < 35", Interval(31.0, 34.0)),
        ("age = 1 or 2", Interval(1.0, 2.0)),
        ("age = 1 or 4", Values((1.0, 4.0))),
        ("age in {1, 4..6}", AnyOf((Interval(4.0, 6.0), Values((1.0,))))),
        ("age != 3", AnyOf((Interval(-INF, 2.0), Interval(4.0, INF)))),
        ("age < 18 or age > 65", AnyOf((Interval(-INF, 17.0), Interval(66.0, INF)))),
        ("(age < 18 or age > 65), age != 70", AnyOf((Interval(-INF, 17.0), Interval(66, 69), Interval(71.0, INF)))),
        ("not (age < 18 or age > 65)", Interval(18.0, 65.0)),
        ("age not in 30..40", AnyOf((Interval(-INF, 29.0), Interval(41.0, INF)))),
        ("pay > 1.5", Interval(UP, INF)),
        ("pay < 1e3", Interval(-INF, np.nextafter(1000.0, -INF))),
        ("pay in 1.5..2.5", Interval(1.5, 2.5)),
        ("pay != 1.5", AnyOf((Interval(-INF, DOWN), Interval(UP, INF)))),
        ("pay >= -2.5", Interval(-2.5, INF)),
        ("pay >= −2.5", Interval(-2.5, INF)),
        ("pay >= 20k", Interval(20_000.0, INF)),
        ("pay >= 1.5M", Interval(1_500_000.0, INF)),
        ("pay >= 20,000", Interval(20_000.0, INF)),
        ("pay in {20,000}", Values((0.0, 20.0))),
        ("pay >= 20%", Interval(20.0, INF)),
        ("two words >= 20%", Interval(0.2, INF)),
        ('"two words" >= 1', Interval(1.0, INF)),
        ("two words in 1..2", Interval(1.0, 2.0)),
        ("Two Words in 1..2", Interval(1.0, 2.0)),
        ("'in' = false", Point(0.0)),
        ("in = true", Point(1.0)),
        ("in = yes", Point(1.0)),
        ("in = 0", Point(0.0)),
        ("in", Point(1.0)),
        ("not in", Point(0.0)),
        ("hit", Point(1.0)),
        ("hit = no", Point(0.0)),
        ("size > S", Values((1.0, 2.0))),
        ("size <= M", Values((0.0, 1.0))),
        ("rooms=2", Point(1.0)),
        ("rooms = 2.0", Point(1.0)),
        ("day in 1970-01-02..1970-01-11", Interval(1.0, 10.0)),
        ("1970-01-02 <= day <= 1970-01-11", Interval(1.0, 10.0)),
        ("day between 1970-01-02 and 1970-01-11", Interval(1.0, 10.0)),
        ("day in 1970", Interval(0.0, 364.0)),
        ("day = 1972", Interval(730.0, 1095.0)),
        ("day = 1970-02", Interval(31.0, 58.0)),
        ("day in 1970-01..1970-02", Interval(0.0, 58.0)),
        ("day > 1970", Interval(np.nextafter(364.0, INF), INF)),
        ("day >= 1970-02", Interval(31.0, INF)),
        ("day <= 1970-02", Interval(-INF, 58.0)),
        ("day not in 1970", AnyOf((Interval(-INF, np.nextafter(0, -1)), Interval(np.nextafter(364.0, INF), INF)))),
        ("time = 1970-01-02", Interval(1.0, np.nextafter(2.0, 0))),
        ("time <= 1970-01-02", Interval(-INF, np.nextafter(2.0, 0))),
        ("time > 1970-01-02", Interval(2.0, INF)),
        ("time = 1970-01-02 12:00", Point(1.5)),
        ("time in 1970", Interval(0.0, np.nextafter(365.0, 0))),
        ("time in 9999", Interval(2932532.0, INF)),
        ("price > 1", Interval(1.125, INF)),
        ("price >= 1", Interval(0.875, INF)),
        ("price < 1", Interval(-INF, 0.875)),
        ("price = 1", Point(1.0, 0.125)),
        ("price = 1 or 2", Values((1.0, 2.0), 0.125)),
        ("price != 1", AnyOf((Interval(-INF, 0.875), Interval(1.125, INF)))),
        ("state = OR", Point(2.0)),
        ("state = OR or IN", Values((1.0, 2.0))),
        ("state = A&B", Point(3.0)),
        ("state = a or b", Point(4.0)),
        ("state = O'Hara", Point(5.0)),
        ("state =<1", Point(6.0)),
        ("state <1", Point(6.0)),
        ("state = “A&B”", Point(3.0)),
    ],
)
def test_conditions(text, region):
    (found,) = parse_conditions(text, SCHEMA).values()
    assert found == region


@pytest.mark.parametrize("gap", ["missing", "NaN", "NA", "unknown", "?"])
def test_a_gap_says_nothing_after_the_bar_and_cannot_be_asked_for(gap):
    assert parse_conditions(f"age = {gap}, sex = F", SCHEMA) == {"sex": Point(0.0)}
    assert asked(f"pay | age = {gap}").given == {}
    with pytest.raises(QuestionError, match="not which of them are missing"):
        asked(f"P(age = {gap})")


def test_a_condition_that_all_values_meet_says_nothing():
    assert parse_conditions("sex in {F, M}, age < 3 or age >= 3", SCHEMA) == {}
    assert asked("P(sex in {F, M})").asked == {"sex": Values((0.0, 1.0))}


def test_names_conditions_and_probabilities():
    question = asked("pay, age | sex=F, age in 30..40")
    assert question.names == ("pay", "age")
    assert question.given == {"sex": Point(0.0), "age": Interval(30.0, 40.0)}
    event = asked("P(pay > 3, sex=F | age <= 40)")
    assert (event.names, set(event.asked), set(event.given)) == ((), {"sex", "pay"}, {"age"})
    assert repr(asked("pay > 3, sex=F | age <= 40")) == repr(asked("P(pay > 3, sex=F) | age <= 40?")) == repr(event)
    assert asked("P(pay | sex=F)").names == asked("P (pay where sex = F)").names == ("pay",)
    assert asked("two words and pay").names == ("two words", "pay")
    assert asked("P(in, pay > 3)").asked == {"in": Point(1.0), "pay": Interval(np.nextafter(3, INF), INF)}
    assert asked("P(in | sex=F)").names == ("in",)


@pytest.mark.parametrize(
    ("text", "measure", "level"),
    [
        ("mean(pay | sex=F)", "mean", None),
        ("Average(pay) | sex=F", "mean", None),
        ("mean pay | sex=F", "mean", None),
        ("median of pay if sex = F", "median", None),
        ("q10 pay where sex = F?", "quantile", 0.1),
        ("E[pay | sex=F]", "mean", None),
        ("sd(pay) given sex=F", "sd", None),
        ("var(pay | sex=F)", "variance", None),
        ("median(pay|sex=F)", "median", None),
        ("mode(pay|sex=F)", "mode", None),
        ("q5(pay | sex=F)", "quantile", 0.05),
        ("q97.5(pay | sex=F)", "quantile", 0.975),
        ("quantile(pay, 0.1 | sex=F)", "quantile", 0.1),
        ("quantile(pay, 10%) | sex=F", "quantile", 0.1),
    ],
)
def test_measures(text, measure, level):
    question = asked(text)
    assert (question.names, question.measure, question.given) == (("pay",), measure, {"sex": Point(0.0)})
    assert level is None or question.level == pytest.approx(level)


def test_a_measure_of_several_variables():
    assert asked("mean(pay, age | sex=F)").names == ("pay", "age")
    assert asked("quantile(pay, age, 0.5)").names == ("pay", "age")


def test_variables_may_be_called_like_words_of_the_language():
    labels = Variable('a"b', "categorical", categories=("it's", "or", "in"), dtype="string")
    names = ("P", "mean", "and", "given", "mean (kg)", "x | y")
    schema = Schema((*(Variable(name, "continuous") for name in names), labels))
    assert parse_question("P", schema).names == ("P",)
    assert parse_question("P(P)", schema).names == ("P",)
    assert parse_question("mean(mean)", schema).names == ("mean",)
    assert parse_question("mean (kg), x | y | and > 3, given > 2", schema).names == ("mean (kg)", "x | y")
    assert set(parse_question("mean (kg) | and > 3 and given > 2", schema).given) == {"and", "given"}
    assert parse_question("""P | "a\\"b"='it\\'s'""", schema).given == {'a"b': Point(0.0)}
    assert parse_question("""P | a"b = or or it's""", schema).given == {'a"b': Values((0.0, 1.0))}


@pytest.mark.parametrize(
    ("text", "at", "words"),
    [
        ("", 0, "name of a variable"),
        ("pay |", 5, "name of a variable"),
        ("pay sex", 0, "Unknown variable 'pay sex'"),
        ("pay 'sex'", 0, "Unknown variable"),
        ("P(pay > 3", 9, "closing bracket"),
        ("P(pay > 3) x", 11, "should end here"),
        ("pay | sex", 9, "Say what 'sex' should be, such as = F or in {F, M}"),
        ("pay | age in 5", 14, "two dots"),
        ("pay | age in ..", 15, "needs an end"),
        ("pay | sex in {F", 15, "a comma or }"),
        ('pay | "sex', 6, "quote is not closed"),
        ("pay | sex ! F", 10, "Say what 'sex' should be"),
        ("pay | sx=F", 6, "did you mean 'sex'"),
        ("wage", 0, "Unknown variable"),
        ("pay | sex=X", 10, "Unknown category"),
        ("pay | rooms in {1, 9}", 19, "Unknown category"),
        ("pay | age = old", 12, "takes numbers"),
        ("pay | age = 3 kg", 12, "takes numbers; got '3 kg'"),
        ("pay | day > soon", 12, "dates"),
        ("pay | day > 2024-13-01", 12, "dates"),
        ("pay | sex > F", 11, "without an order"),
        ("pay | size > L", 12, "no category beyond"),
        ("pay | age in 40..30", 13, "wrong way round"),
        ("pay | age > 40, age < 30", 24, "No value"),
        ("pay | sex=F, sex=M", 18, "No value of 'sex'"),
        ("pay, pay", 0, "twice"),
        ("sex | sex=F", 0, "nothing is left to ask"),
        ("P(sex=F | sex=F)", 2, "nothing is left to ask"),
        ("pay | sex=F or age > 3", 14, "on 'sex' and 'age'"),
        ("pay | sex=F and age > 3 or age < 2", 26, "put brackets"),
        ("pay | age > 1 or 3", 17, "write the whole condition"),
        ("pay | sex=F, M", 13, "'M' is a value of 'sex': write sex = M"),
        ("pay | age in [30, 40]", 13, "write 30..40 or {30, 40}"),
        ("pay | age = pay", 12, "'pay' is a variable"),
        ("pay | 3 < age > 2", 13, "one way"),
        ("sum(pay)", 0, "Unknown measure 'sum'"),
        ("q25(pay), q75(pay)", 8, "ask one at a time"),
        ("pay(sex=F)", 0, "takes no brackets"),
        ("quantile(pay)", 12, "Say which quantile"),
        ("quantile(pay, 3)", 14, "between 0 and 1"),
        ("mean(wages)", 5, "Unknown variable 'wages'"),
        ("mean(pay, sex)", 10, "'sex' has categories, so it has no mean"),
        ("pay | age between 3", 19, "Expected `and`"),
    ],
)
def test_mistakes_are_shown_with_their_place(text, at, words):
    with pytest.raises(QuestionError) as caught:
        asked(text)
    sentence, line, caret = str(caught.value).split("\n")
    assert words in sentence
    assert line == f"  {text}"
    assert caret == " " * (at + 2) + "^"


def test_percentages_that_may_be_shares_are_refused():
    schema = Schema((Variable("growth", "continuous", observed=(-0.5, 1.5)),))
    with pytest.raises(QuestionError, match="without %"):
        parse_question("P(growth > 20%)", schema)


# ---- sixty questions ---------------------------------------------------------------------------------------


def variable(text):
    """A column as the file of questions declares it."""
    name, kind = (part.strip() for part in text.split(":", 1))
    if "{" in kind:
        labels = [label.strip() for label in kind[kind.index("{") + 1 : kind.rindex("}")].split(",")]
        digits = all(label.isdigit() for label in labels)
        return Variable(
            name,
            "categorical",
            categories=tuple(map(int, labels) if digits else labels),
            ordered=kind.startswith("ordered"),
        )
    match kind.split():
        case ["bool"]:
            return Variable(name, "categorical", categories=(False, True))
        case ["integer"]:
            return Variable(name, "integer", dtype="int64")
        case ["date" | "datetime"]:
            return Variable(name, "continuous", dtype="date" if kind == "date" else "datetime[us]")
        case ["number", *ends]:
            low, high = map(float, ends[0].split("..")) if ends else (np.nan, np.nan)
            return Variable(name, "continuous", observed=(low, high))
    raise AssertionError(kind)


def sixty():
    for line in (Path(__file__).parent / "questions.txt").read_text().splitlines():
        if line.startswith("["):
            schema = Schema(tuple(map(variable, line.partition("] ")[2].split("; "))))
        elif line and not line.startswith("#"):
            text, meaning = line.split("  =>  ")
            yield pytest.param(text, meaning, schema, id=text)


def test_there_are_sixty_questions_about_twenty_tables():
    questions = list(sixty())
    assert len(questions) == 60
    assert len({id(question.values[2]) for question in questions}) == 20


@pytest.mark.parametrize(("text", "meaning", "schema"), list(sixty()))
def test_natural_questions_are_understood(text, meaning, schema):
    question = parse_question(text, schema)
    assert question_text(question, schema) == meaning
    assert repr(parse_question(meaning, schema)) == repr(question)


def test_the_page_shows_the_sixty_questions():
    page = (Path(__file__).parents[2] / "docs" / "questions.md").read_text()
    shown = re.findall(r"^    (.+?)  +# (.+)$", page, re.MULTILINE)
    assert shown == [(question.values[0], question.values[1]) for question in sixty()]


# ---- any text --------------------------------------------------------------------------------------------------

WORDS = st.sampled_from([
    *("sex", "age", "pay", "two words", "F", "M", "S", "40", "-3.5", "20%", "missing", '"', "'", "&", "..", "|", ","),
    *("=", "!=", "<", ">=", "(", ")", "{", "}", "[", "]", "and", "or", "not", "in", "is", "between", "P(", "mean("),
])  # fmt: skip


@given(st.text(max_size=40) | st.lists(WORDS, max_size=14).map(" ".join) | st.lists(WORDS, max_size=14).map("".join))
@settings(max_examples=300)
def test_any_text_is_read_or_refused(text):
    with suppress(QuestionError):
        question = asked(text)
        assert repr(asked(question_text(question, SCHEMA))) == repr(question)


@given(st.lists(st.text(min_size=1, max_size=8).filter(lambda s: s.strip() == s), min_size=2, max_size=2, unique=True))
@settings(max_examples=60)
def test_every_name_and_value_can_be_asked_for_in_quotes(texts):
    name, value = texts
    schema = Schema((Variable(name, "categorical", categories=(value, value + "x"), dtype="string"),))
    quoted = ['"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"' for text in texts]
    question = parse_question(f"P({quoted[0]}={quoted[1]})", schema)
    assert question.asked == {name: Point(0.0)}
    assert repr(parse_question(question_text(question, schema), schema)) == repr(question)


def test_a_long_question_is_shown_around_its_place():
    with pytest.raises(QuestionError) as error:
        asked("a" * 10 + "," * 9_000)
    assert len(str(error.value)) < 600
    with pytest.raises(QuestionError, match="at most 10,000 characters"):
        asked("pay" + " " * MOST_CHARACTERS)
    for text in ("(" * 5_000, "P(" + "not " * 2_000 + "in)", "pay | " + "(" * 60 + "age > 3" + ")" * 60):
        with pytest.raises(QuestionError):
            asked(text)
