"""Results of tasks on disk, one file each.

A file is written under another name, flushed to disk and then moved in one step, so a kill at any moment leaves whole
files only. A result is used again only for the same settings, package versions and code.
"""

from __future__ import annotations

import hashlib
import json
import logging
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jointwise
from jointwise._files import replacing
from jointwise.exceptions import FileFormatError, InputError
from jointwise.experiments.base import Result, Task

FORMAT = "jointwise task result"
# Packages whose version may change a result.
PACKAGES = ("jointwise", "numpy", "scipy", "scikit-learn", "numba")
# Parts whose code is not compared: three only show results, and experiments have versions in their tasks' settings.
PARTS_WITHOUT_RESULTS = ("cli", "plots", "explore", "experiments")

LOGGER = logging.getLogger("jointwise")


@dataclass(frozen=True)
class Record:
    """A stored result."""

    result: Result
    seconds: float
    date: str  # when it finished, UTC


@dataclass(frozen=True)
class TaskStore:
    """The results of one experiment, in its own folder."""

    folder: Path
    experiment: str

    def path(self, task: Task) -> Path:
        """Return the file of the task's result."""
        if not re.fullmatch(r"[\w.+-]+", task.key, re.ASCII):
            raise InputError(
                f"The task key {task.key!r} cannot name a file: use letters, digits, '.', '_', '-' and '+' only."
            )
        return self.folder / self.experiment / f"{task.key}.json"

    def load(self, task: Task) -> Record | None:
        """Return the stored result of exactly this task, or None if it must run."""
        path = self.path(task)
        if not path.exists():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except (json.JSONDecodeError, UnicodeDecodeError):
            LOGGER.warning("%s is damaged; its task runs again.", path)
            return None
        if not isinstance(found, dict) or found.get("format") != FORMAT:
            raise FileFormatError(
                f"{path} was not written by `jointwise reproduce` and would be overwritten; move it or choose another "
                "folder."
            )
        if any(found.get(key) != value for key, value in self._identity(task).items()):
            return None
        return Record(found["result"], found["seconds"], found["date"])

    def save(self, task: Task, record: Record) -> None:
        """Write the result; on return it is on disk."""
        content = {**self._identity(task), "seconds": record.seconds, "date": record.date, "result": record.result}
        write_atomically(self.path(task), json.dumps(content, indent=1))

    def _identity(self, task: Task) -> Result:
        """Return what must be equal for a stored result to be used again, as JSON returns it."""
        identity = {
            "format": FORMAT,
            "experiment": self.experiment,
            "key": task.key,
            "settings": dict(task.settings),
            "versions": versions(),
            "code": code_digest(),
        }
        found: Result = json.loads(json.dumps(identity))
        return found


def write_atomically(path: Path, text: str) -> None:
    """Write a text file to disk, then move it into place in one step."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as file:
        file.write(text.encode())


def versions() -> Mapping[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    return {"python": platform.python_version()} | {package: version(package) for package in PACKAGES}


@cache
def code_digest() -> str:
    """Return a digest of the sources of this package that results depend on."""
    root = Path(jointwise.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root)
        if name.parts[0].removesuffix(".py") not in PARTS_WITHOUT_RESULTS:
            digest.update(f"{name.as_posix()}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def as_json(value: Any) -> Any:
    """Return a value as JSON returns it, so that a result is the same when computed and when read."""
    return json.loads(json.dumps(value))
