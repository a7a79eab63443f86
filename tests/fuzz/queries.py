"""Questions in the language of the command: answered if they are right, else shown where they go wrong."""

import datetime as dt
from random import Random
from typing import Any

from hypothesis import strategies as st
from tests.fuzz import material, nasty
from tests.fuzz.case import Case, is_probability, law, refused

from jointwise import JointDensity
from jointwise.exceptions import ImpossibleEventError, JointwiseError
from jointwise.joint.language import parse_conditions, parse_question
from jointwise.tables.dtypes import is_temporal
from jointwise.tables.variables import Variable

SIGNS = st.text(alphabet="abP(){}[]&|,=<>!.'\"\\ 0123456789-+%ke\ninot", max_size=40)
# Sums of a few numbers, each rounded once.
TOLERANCE = 1e-7


def run(case: Case) -> None:
    """Ask something right, something changed, or something that is no question."""
    density = case.rng.choice(material.densities())
    pick = case.rng.random()
    if pick < 0.4:
        text = question(case.rng, density)
        case.note(f"{text!a:.500} of {density.names}")
        try:
            ask(density, text)
        except ImpossibleEventError:
            pass
        except JointwiseError as error:
            law("condition" in str(error) or "left" in str(error), f"a right question is refused: {error}")
    elif pick < 0.6:
        _partition(case, density)
    elif pick < 0.9:
        text = nasty.changed_bytes(case.rng, question(case.rng, density).encode()).decode(errors="surrogateescape")
        case.note(f"{text!a:.500}")
        refused(ask, density, text)
    else:
        text = case.drawn(SIGNS | st.text(max_size=30)) * case.rng.choice((1, 1, 1, 500))
        case.note(f"{text!a:.500}")
        refused(ask, density, text)
        refused(lambda: parse_conditions(text, density.schema))


def ask(density: JointDensity, text: str) -> None:
    """Answer a question as the command does, and check the answer."""
    found = density.ask(text)
    law(len(repr(found)) > 0 and bool(found.to_dict(5)), "the answer has no printed form")
    if found.kind == "probability":
        law(is_probability(found.value), f"the probability is {found.value}")
    elif found.distribution is not None:
        total = found.distribution.table.sum()
        law(abs(total - 1) < TOLERANCE, f"the rows of the table sum to {total}")


def _partition(case: Case, density: JointDensity) -> None:
    """The probabilities of all that a variable can be sum to one, whatever is given of another."""
    rng = case.rng
    variable, other = rng.sample(list(density.schema), 2)
    given = condition(rng, other) if rng.random() < 0.7 else ""
    name = quoted(variable.name)
    if variable.categories is not None:
        events = [f"{name} = {quoted(str(each))}" for each in variable.categories]
    else:
        at = value(rng, variable)
        events = [f"{name} < {at}", f"{name} = {at}", f"{name} > {at}"]
    texts = [f"P({event}{' | ' if given else ''}{given})" for event in events]
    case.note(f"{texts!a:.800}")
    try:
        bounds = [parse_question(text, density.schema) for text in texts]
        total = sum(density.condition(bound.given).probability(bound.asked) for bound in bounds)
    except ImpossibleEventError:
        return
    law(abs(total - 1) < TOLERANCE, f"the parts sum to {total}")


# ---- questions that are right --------------------------------------------------------------------------------


def question(rng: Random, density: JointDensity) -> str:
    """Return a question of the grammar, about variables that are there."""
    variables = rng.sample(list(density.schema), rng.randint(1, min(3, len(density.schema))))
    others = [variable for variable in density.schema if variable not in variables]
    given = ", ".join(condition(rng, each) for each in rng.sample(others, rng.randint(0, min(2, len(others)))))
    given = f" | {given}" if given else ""
    pick = rng.random()
    if pick < 0.2:
        measure = rng.choice(("mean", "sd", "variance", "median", "mode", "q10", "q97.5"))
        numbers = [each for each in variables if measure == "mode" or each.categories is None]
        if numbers:
            return f"{measure}({', '.join(quoted(each.name) for each in numbers)}{given})"
    if pick < 0.6:
        return f"P({', '.join(condition(rng, each) for each in variables)}{given})"
    return f"{', '.join(quoted(each.name) for each in variables)}{given}"


def condition(rng: Random, variable: Variable) -> str:
    """Return a condition on a variable."""
    name = quoted(variable.name)
    if variable.categories is not None:
        chosen = [
            quoted(str(each)) for each in rng.sample(variable.categories, rng.randint(1, len(variable.categories)))
        ]
        if rng.random() < 0.4:
            return f"{name} in {{{', '.join(chosen)}}}"
        return f"{name} {rng.choice(('=', '!=') if len(variable.categories) > 1 else ('=',))} {chosen[0]}"
    low, high = sorted((value(rng, variable), value(rng, variable)), key=lambda text: _key(variable, text))
    relations = ["<", "<=", ">", ">="]
    shapes = [f"{name} {rng.choice(relations)} {low}", f"{name} in {low}..{high}", f"{name} in ..{high}",
              f"{name} in {low}..", f"{name} in {{{low}, {high}}}", f"{low} <= {name} <= {high}", f"{name} != {low}",
              f"{name} <= {low} or {name} >= {high}", f"not {name} in {low}..{high}"]  # fmt: skip
    return rng.choice(shapes)


def value(rng: Random, variable: Variable) -> str:
    """Return a value that a variable takes, or nearly."""
    if is_temporal(variable.dtype):
        return str(dt.date(2019, 1, 1) + dt.timedelta(days=rng.randrange(2500)))
    if variable.kind == "integer":
        return str(rng.randrange(-2, 60))
    return rng.choice((str(round(rng.uniform(-2, 9), 2)), "0", "5", "1e-3", "-0.5"))


def _key(variable: Variable, text: str) -> Any:
    return text if is_temporal(variable.dtype) else float(text)


def quoted(text: str) -> str:
    """Return a name or value as the language wants it."""
    return text if text.isidentifier() and text not in {"in", "P"} else f'"{text}"'
