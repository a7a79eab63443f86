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
    decisions,
    explore,
    gaps,
    gpu,
    intervals,
    large,
    oddities,
    paper,
    passes,
    recovery,
    relatives,
    rows,
    shapes,
    sources,
    speed,
    stages,
    startup,
    steps,
    tables,
    tree_states,
    trees,
)
from benchmarks.report import publish

MODULES = (
    accuracy, answers, speed, steps, startup, gaps, gpu, paper, passes, relatives, recovery, cpd3, stages, counts,
    blocks, large, sources, decisions, tables, intervals, trees, tree_states, rows, oddities, shapes, explore,
)  # fmt: skip
BENCHMARKS = {module.__name__.rpartition(".")[2]: module.run for module in MODULES}


def main() -> None:
    """Parse the names and run each benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="+", choices=sorted(BENCHMARKS), metavar="NAME", help=", ".join(BENCHMARKS))
    parser.add_argument("--table", choices=answers.TABLES, default="adult", help="table of `answers`")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split and questions of `answers`")
    parser.add_argument("--questions", type=int, default=answers.N_QUESTIONS, help="how many `answers` asks")
    parser.add_argument("--model", choices=answers.MODELS, default="stack", help="what `answers` fits")
    parser.add_argument("--seeds", type=int, nargs="+", default=decisions.SEEDS, help="seeds of `decisions`")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where `passes` runs")
    parser.add_argument("--shapes", nargs="+", default=(), help='what `shapes` fits, such as "1000x200"; default: all')
    parser.add_argument("--models", nargs="+", choices=shapes.MODELS, default=list(shapes.MODELS), help="for `shapes`")
    parser.add_argument("--splits", type=int, nargs="+", default=tree_states.SPLITS, help="splits of `tree_states`")
    parser.add_argument("--sizes", type=int, nargs="+", default=tree_states.SIZES, help="rows of its law")
    given = parser.parse_args()
    chosen = BENCHMARKS | {
        "answers": partial(answers.run, given.table, given.seed, given.model, given.questions),
        "decisions": partial(decisions.run, given.seeds),
        "passes": partial(passes.run, given.device),
        "shapes": partial(shapes.run, given.models, given.shapes),
        "tree_states": partial(tree_states.run, given.splits, given.sizes),
    }
    for name in given.names:
        publish(name, chosen[name]())


if __name__ == "__main__":
    main()
