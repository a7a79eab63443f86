"""Prints and saves results, with the versions and the machine they come from."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

OUT = Path("out/benchmarks")
PACKAGES = ("jointwise", "numpy", "scipy", "scikit-learn")

Row = dict[str, Any]


def publish(name: str, rows: list[Row]) -> None:
    """Print rows as a table and save them with versions, machine and date."""
    table = Table(*rows[0], title=name)
    for row in rows:
        table.add_row(*(f"{v:.3g}" if isinstance(v, float) else str(v) for v in row.values()))
    Console(width=160).print(table)
    OUT.mkdir(parents=True, exist_ok=True)
    record = {
        "benchmark": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {package: version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "machine": {"processor": platform.machine(), "system": platform.system(), "cores": os.cpu_count()},
        "rows": rows,
    }
    (OUT / f"{name}.json").write_text(json.dumps(record, indent=1, default=float))
