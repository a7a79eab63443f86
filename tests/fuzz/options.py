"""Command lines that nobody means: any command with any of its options, and any values."""

import os
from functools import cache
from random import Random
from typing import Any

import typer
from hypothesis import strategies as st
from tests.fuzz import material, nasty
from tests.fuzz.case import Case
from tests.fuzz.commands import typed
from tests.fuzz.places import character_device

from jointwise.cli.app import app

NUMBERS = (
    "0", "1", "2", "2", "3", "3", "4", "4", "5", "10", "-1", "1.5", "1e20",
    "100000000000000000000", "9223372036854775808", "nan", "inf", "", " ", "0x10",
    "1_0", "١", "--", "-", "\udcff",
)  # fmt: skip
QUESTIONS = (
    "job", "job | sex=F", "P(job=cook)", "P(age > 40 | sex=F)", "age, job", '"monthly pay" | age in 30..40', "since",
    "mean(age | job=cook or nurse)", "q90(monthly pay)", "mode(job), age", "P(20 < age < 40 and sex != F)",
    "sex, age, job, since", 'sex, age, job, "monthly pay", since', "", "|", "P(", "job | job=cook", "P(job)", "nobody",
)  # fmt: skip
GOOD = ("table.csv", "table.csv", "model.jw", "model.jw", "model.jw")
INPUTS = (*GOOD, *GOOD, *GOOD, "empty", "folder", "nowhere", "-", "null")
RESULTS = (
    "out.csv",
    "out.json",
    "out.parquet",
    "out.jw",
    "out.png",
    "out",
    "-",
    "-",
    "folder",
    "nowhere/out.csv",
    "full",
    "null",
    "out\udcff.csv",
)
SENSIBLE: dict[str, tuple[str, ...]] = {
    "model": INPUTS,
    "data": INPUTS,
    "output": RESULTS,
    "question": QUESTIONS,
    "given": ("sex=F", "age > 40", "sex=F, age > 40", "job = astronaut", "", "age > 1e999"),
    "target": ("job", "sex", "age", "nobody"),
    "kind": ("age=categorical", "age=continuous", "job=integer", "=", "age=", "job"),
    "drop": ("age", "job", "nobody"),
    "format": ("csv", "tsv", "json", "jsonl", "parquet", "arrow", "table", "xls"),
    "form": ("csv", "tsv", "json", "jsonl", "parquet", "arrow", "table", "xls"),
    "missing": ("F", "cook", "", "NA"),
    "checkpoint": ("c", "folder", "nowhere/c", "table.csv", "model.jw"),
    "folder": ("out", "table.csv"),
    "names": ("nothing", "", "a,b,c,d,e", "a,a", '"a,b",c'),
    "file": ("table.csv", "empty", "nowhere", "-", "model.jw"),
    "sep": (",", ";", "tab", "space", "ab", '"', ""),
    "decimal": (".", ",", ";"),
    "encoding": ("utf-8", "latin-1", "utf-16", "ascii", "rot13", "klingon", ""),
    "weight": ("age", "monthly pay", "sex", "nobody"),
    "rare": ("5%", "0.5", "1", "-1%", "much"),
}
# These run for minutes, and are only to be refused.
LONG = {"demo", "reproduce", "bench"}


@cache
def commands() -> dict[str, list[Any]]:
    """Return the parameters of each command."""
    return {name: command.params for name, command in typer.main.get_command(app).commands.items()}


def run(case: Case) -> None:
    """Write a command line, and run it."""
    rng = case.rng
    for name, data in (("table.csv", material.as_csv(material.people(30))), ("model.jw", material.people_model())):
        (case.folder / name).write_bytes(data)
    (case.folder / "empty").touch()
    (case.folder / "folder").mkdir()
    for name in ("full", "null"):
        character_device(case.folder / name, name)
    args = vector(case)
    stdin = rng.choice((b"", b"sex,age\nF,1\n", material.people_model(), b"\xff\xfe"))
    typed(case, args, stdin)


def vector(case: Case) -> list[str]:
    """Return the words after `jointwise`."""
    rng = case.rng
    if rng.random() < 0.05:
        return [_argument(word) for word in case.drawn(st.lists(st.text(max_size=6), max_size=4))]
    name = rng.choice(list(commands()))
    words = [word for parameter in commands()[name] for word in _words(rng, parameter)]
    if rng.random() < 0.15:
        words.insert(
            rng.randrange(len(words) + 1), rng.choice(("--no-such-option", "-z", "--help", "--", *nasty.TEXTS))
        )
    if rng.random() < 0.1 and words:
        words.pop(rng.randrange(len(words)))
    if name in LONG:
        words.append("--no-such-option")
    elif name == "fit" and "--n-components" not in words:
        words += ["--n-components", "1"]
    return [name, *map(_argument, words)]


def _argument(word: str) -> str:
    """Return a word as a process can be given it: no zero byte, and what is no text only as bytes."""
    return os.fsdecode(word.replace("\0", "").encode(errors="surrogateescape" if _is_bytes(word) else "replace"))


def _is_bytes(word: str) -> bool:
    return all("\udc80" <= letter <= "\udcff" for letter in word if "\ud800" <= letter <= "\udfff")


def _words(rng: Random, parameter: Any) -> list[str]:
    is_option = parameter.opts[0].startswith("-")
    if is_option and rng.random() < (0.1 if parameter.required else 0.75):
        return []
    if not is_option:
        return [_value(rng, parameter.name) for _ in range(1 if parameter.nargs == 1 or rng.random() < 0.7 else 2)]
    option = rng.choice(parameter.opts)
    if getattr(parameter, "is_flag", False):
        return [option]
    return [option, _value(rng, parameter.name)]


def _value(rng: Random, name: str) -> str:
    if rng.random() < 0.05:
        return rng.choice(nasty.TEXTS)
    return rng.choice(SENSIBLE.get(name, NUMBERS))
