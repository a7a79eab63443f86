"""The page of results, in Markdown: how it was made, then a section for each experiment."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jointwise.experiments.store import versions


@dataclass(frozen=True)
class Section:
    """One experiment on the page.

    Parameters
    ----------
    name, title : str
        Of the experiment.
    text : str
        Its report.
    seconds : float
        How long its tasks took, all together.
    date : str
        When the last of them was finished, UTC.
    """

    name: str
    title: str
    text: str
    seconds: float
    date: str


def page(sections: Sequence[Section], *, command: str, quick: bool) -> str:
    """Markdown of the whole page."""
    minutes = sum(section.seconds for section in sections) / 60
    made = (
        f"Made by `{command}`; every number below comes from that run. It took {minutes:.1f} minutes of computing, "
        f"counted on one core, and ended {max(section.date for section in sections)[:10]} on a machine with "
        f"{machine()}. Versions: {_versions()}."
    )
    head = ["# Results", made]
    if quick:
        head.append(
            "This is a quick run: fewer truths and smaller tables than in the full one, so the numbers are rough."
        )
    body = [
        f"## {s.title}\n\n{s.text.strip()}\n\nComputed in {s.seconds / 60:.1f} minutes of one core." for s in sections
    ]
    return "\n\n".join([*head, *body]) + "\n"


def machine() -> str:
    """Cores, memory and system, in general words."""
    cores = os.cpu_count() or 1
    words = [f"{cores} core{'s' if cores > 1 else ''}"]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
        words.append(f"{memory:.0f} GiB of memory")
    return f"{' and '.join(words)} ({platform.system()}, {platform.machine()})"


def markdown_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Rows of equal keys as a Markdown table.

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


def _versions() -> str:
    return ", ".join(f"{name} {number}" for name, number in versions().items())
