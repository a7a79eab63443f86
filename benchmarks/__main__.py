"""Run named benchmarks: `python -m benchmarks accuracy`, `python -m benchmarks --help`."""

from __future__ import annotations

import argparse

from benchmarks import (
    accuracy,
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
    for name in parser.parse_args().names:
        publish(name, BENCHMARKS[name]())


if __name__ == "__main__":
    main()
