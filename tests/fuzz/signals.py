"""Ctrl-C, kill and kill -9 at any moment: nothing half-written, nothing left behind, and a fit goes on."""

import os
import signal
import time
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fuzz import material
from tests.fuzz.case import Case, law
from tests.fuzz.commands import IMPORT, READY, finish, start
from tests.fuzz.places import names_in

OLD = b"what was there before\n"
OFTEN = "import jointwise.fitting.checkpoint; jointwise.fitting.checkpoint.INTERVAL = 0.05; "
COMMANDS = {
    "fit": ("fit", "table.csv", "--n-components", "8", "--seed", "0", "-o", "out", "--checkpoint", "checkpoint"),
    "sample": ("sample", "model.jw", "-n", "300000", "--seed", "0", "--format", "csv", "-o", "out"),
    "impute": ("impute", "model.jw", "long.csv", "--format", "csv", "-o", "out"),
}
SIGNALS = {signal.SIGINT: (130, -2), signal.SIGTERM: (143, -15), signal.SIGKILL: (-9,)}
# Rows of tables that keep a command at work for some seconds.
FIT_ROWS, IMPUTE_ROWS = 600, 60_000


@cache
def expected(command: str) -> tuple[bytes, float]:
    """Return what a command writes if nobody stops it, and how long that takes."""
    with TemporaryDirectory() as name:
        _inputs(Path(name))
        begun = time.monotonic()
        code, _, err = finish(start(COMMANDS[command], cwd=name))
        law(code == 0, err)
        return (Path(name) / "out").read_bytes(), time.monotonic() - begun


@cache
def _files() -> dict[str, bytes]:
    return {
        "table.csv": material.as_csv(material.people(FIT_ROWS)),
        "long.csv": material.as_csv(material.people(IMPUTE_ROWS)),
        "model.jw": material.people_model(),
    }


def _inputs(folder: Path) -> None:
    for name, data in _files().items():
        (folder / name).write_bytes(data)
    (folder / "temporary").mkdir()


def run(case: Case) -> None:
    """Send a signal to a command at work, look at what is there, and let a fit go on."""
    command, number = case.rng.choice(list(COMMANDS)), case.rng.choice(list(SIGNALS))
    result, seconds = expected(command)
    delay = case.rng.uniform(0, 1.1 * seconds)
    case.note(f"{command}, {number.name} after {delay:.2f} s of {seconds:.2f} s")
    _inputs(case.folder)
    if old := case.rng.random() < 0.5:
        (case.folder / "out").write_bytes(OLD)
    before = names_in(case.folder)
    code, err = _stopped(case, command, number, delay)
    law(code in (0, *SIGNALS[number]), f"exit code {code}: {err}")
    _nothing_half_written(case.folder / "out", result, old=old, done=code == 0)
    if number is not signal.SIGKILL:
        left = names_in(case.folder) - before - {"out", "checkpoint"}
        left |= names_in(case.folder / "temporary")
        law(not left, f"files are left behind: {left}")
    if command == "fit":
        _goes_on(case, result)


def _stopped(case: Case, command: str, number: signal.Signals, delay: float) -> tuple[int, str]:
    ours, theirs = os.pipe()
    code = IMPORT + (OFTEN if number is signal.SIGKILL and command == "fit" else "") + READY + "main()"
    process = start(
        [str(theirs), *COMMANDS[command]],
        code=code,
        cwd=case.folder,
        temporary=case.folder / "temporary",
        pass_fds=[theirs],
    )
    os.close(theirs)
    with os.fdopen(ours, "rb") as ready:
        ready.read(1)
    time.sleep(delay)
    process.send_signal(number)
    found, _, err = finish(process)
    return found, err


def _nothing_half_written(place: Path, result: bytes, *, old: bool, done: bool) -> None:
    """Under the final name is what was there before, or all of the result."""
    held = place.read_bytes() if place.exists() else None
    allowed = [result] if done else [result, OLD if old else None]
    law(held in allowed, f"under the final name are {'no' if held is None else len(held)} bytes")


def _goes_on(case: Case, result: bytes) -> None:
    code, _, err = finish(start(COMMANDS["fit"], cwd=case.folder))
    law(code == 0, f"the fit does not go on: exit code {code}: {err}")
    law((case.folder / "out").read_bytes() == result, "a fit that went on has ended with another model")
    law(not (case.folder / "checkpoint").exists(), "the checkpoint is left behind")
