"""The page of results in Markdown: how it was made, then a section for each experiment; tables and figures."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from jointwise._typing import FloatArray
from jointwise.experiments.store import versions


@dataclass(frozen=True)
class Section:
    """One experiment on the page."""

    title: str
    text: str  # its report
    seconds: float  # of all its tasks
    date: str  # when the last task finished, UTC


def page(sections: Sequence[Section], *, command: str, quick: bool) -> str:
    """Return the Markdown of the whole page."""
    minutes = sum(section.seconds for section in sections) / 60
    made = (
        f"Made by `{command}`; every number below comes from that run. It took {minutes:.1f} minutes of one core and "
        f"ended {max(section.date for section in sections)[:10]} on a machine with {machine()}. Versions: "
        f"{_versions()}."
    )
    head = ["# Results", made]
    if quick:
        head.append(
            "This is a quick run with fewer truths and smaller tables than the full run, so the numbers are rough."
        )
    body = [
        f"## {s.title}\n\n{s.text.strip()}\n\nComputed in {s.seconds / 60:.1f} minutes of one core." for s in sections
    ]
    return "\n\n".join([*head, *body]) + "\n"


def machine() -> str:
    """Return cores, memory and system, in general words."""
    cores = os.cpu_count() or 1
    words = [f"{cores} core{'s' if cores > 1 else ''}"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        words.append(f"{memory:.0f} GiB of memory")
    return f"{' and '.join(words)} ({platform.system()}, {platform.machine()})"


def markdown_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return rows of equal keys as a Markdown table.

    Examples
    --------
    >>> print(markdown_table([{"method": "JUPAD", "D": "0.25"}]))
    | method | D |
    | --- | --- |
    | JUPAD | 0.25 |
    """
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *([row[name] for name in names] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def means_table(heading: str, measured: Iterable[tuple[str, str, float]]) -> str:
    """Return means and standard errors of (data set, method, value): a row for each method, a column for each data set.

    Examples
    --------
    >>> print(means_table("error", [("Seeds", "JUPAD", 0.5), ("Seeds", "JUPAD", 0.7), ("Wifi", "JUPAD", 1.0)]))
    | error | Seeds | Wifi |
    | --- | --- | --- |
    | JUPAD | 0.600 ± 0.100 | 1.000 |
    """
    cells: dict[str, dict[str, list[float]]] = {}
    for dataset, method, value in measured:
        cells.setdefault(method, {}).setdefault(dataset, []).append(value)
    return markdown_table(
        [
            {heading: method} | {dataset: with_error(np.array(values)) for dataset, values in row.items()}
            for method, row in cells.items()
        ]
    )


def standard_error(values: FloatArray) -> float:
    """Return the standard error of the mean, and zero for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def with_error(values: FloatArray, sign: str = "") -> str:
    """Return mean ± standard error; the mean alone if there is one value or an infinite one.

    Examples
    --------
    >>> with_error(np.array([0.1, 0.3])), with_error(np.array([0.1]), sign="+")
    ('0.200 ± 0.100', '+0.100')
    """
    mean = f"{values.mean():{sign}.3f}"
    return f"{mean} ± {standard_error(values):.3f}" if len(values) > 1 and np.isfinite(values).all() else mean


def save_figure(figure: Any, path: Path) -> None:
    """Write a matplotlib figure, making its folder if needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _versions() -> str:
    return ", ".join(f"{name} {number}" for name, number in versions().items())
