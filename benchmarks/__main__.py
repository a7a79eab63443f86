"""Run named benchmarks: `python -m benchmarks accuracy`, `python -m benchmarks --help`."""

from __future__ import annotations

import argparse
from functools import partial

from benchmarks import (
    accuracy,
    answers,
    blocks,
    counts,
    cpd3,
    engines,
    gaps,
    gpu,
    large,
    paper,
    recovery,
    relatives,
    speed,
    stages,
    startup,
    steps,
)
from benchmarks.report import publish

BENCHMARKS = {
    "accuracy": accuracy.run,
    "answers": answers.run,
    "speed": speed.run,
    "steps": steps.run,
    "startup": startup.run,
    "gaps": gaps.run,
    "gpu": gpu.run,
    "paper": paper.run,
    "relatives": relatives.run,
    "recovery": recovery.run,
    "cpd3": cpd3.run,
    "stages": stages.run,
    "counts": counts.run,
    "blocks": blocks.run,
    "large": large.run,
    "engines": engines.run,
}


def main() -> None:
    """Parse the names and run them in turn."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(BENCHMARKS), metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--table", choices=answers.TABLES, default="adult", help="what `answers` asks about")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split and the questions of `answers`")
    given = parser.parse_args()
    chosen = BENCHMARKS | {"answers": partial(answers.run, given.table, given.seed)}
    for name in given.names:
        publish(name, chosen[name]())


if __name__ == "__main__":
    main()
