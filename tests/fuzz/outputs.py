"""Places to write to and to read from that are no plain files: all of it arrives, or the old content stays."""

import os
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.fuzz import material
from tests.fuzz.case import Case, law
from tests.fuzz.commands import finish, start, typed
from tests.fuzz.places import character_device, names_in

# What is written, by the name of the command: each with a seed, so that its bytes are known.
COMMANDS = {
    "fit": ("fit", "{table}", "--n-components", "1", "--seed", "0", "-o", "{out}"),
    "sample": ("sample", "{model}", "-n", "40", "--seed", "0", "--format", "csv", "-o", "{out}"),
    "impute": ("impute", "{model}", "{table}", "--format", "csv", "-o", "{out}"),
}
OLD = b"what was there before\n"
# Those who only read or write a pipe are done long before.
SECONDS = 30.0


@cache
def expected(command: str) -> bytes:
    """Return what a command writes to a plain file."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        _inputs(folder)
        case = Case("outputs", 0, 0, folder)
        words = {"table": folder / "table.csv", "model": folder / "model.jw", "out": folder / "out"}
        result = typed(case, [word.format(**words) for word in COMMANDS[command]])
        law(result.exit_code == 0, result.stderr)
        return (folder / "out").read_bytes()


def run(case: Case) -> None:
    """Run a command with one place of an odd kind."""
    _inputs(case.folder)
    command = case.rng.choice(list(COMMANDS))
    kind = case.rng.choice(list(KINDS))
    case.note(f"{command} {kind}")
    before = names_in(case.folder)
    KINDS[kind](case, command)
    left = {name for name in names_in(case.folder) - before if name.startswith(".")}
    law(not left, f"files are left behind: {left}")


def _inputs(folder: Path) -> None:
    (folder / "table.csv").write_bytes(material.as_csv(material.people(30)))
    (folder / "model.jw").write_bytes(material.people_model())


def _ran(case: Case, command: str, out: Any = "out", table: Any = "table.csv", model: Any = "model.jw", **options: Any):
    words = {"table": table, "model": model, "out": out}
    return finish(start([word.format(**words) for word in COMMANDS[command]], cwd=case.folder, **options), SECONDS)


def _done(code: int, err: str) -> None:
    law(code == 0, f"exit code {code}: {err}")


def _holds(place: Path, command: str) -> None:
    law(place.read_bytes() == expected(command), f"{place.name} does not hold the result")


def _mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


# ---- files and links -----------------------------------------------------------------------------------------


def _new(case: Case, command: str) -> None:
    code, _, err = _ran(case, command)
    _done(code, err)
    _holds(case.folder / "out", command)
    plain = case.folder / "plain"
    plain.touch()
    law(_mode(case.folder / "out") == _mode(plain), f"a new file has the mode {_mode(case.folder / 'out'):o}")


def _old(case: Case, command: str) -> None:
    place, mode = case.folder / "out", case.rng.choice((0o600, 0o640, 0o644, 0o664, 0o400))
    place.write_bytes(OLD)
    place.chmod(mode)
    writable = os.access(place, os.W_OK)
    code, _, err = _ran(case, command)
    law(_mode(place) == mode, f"the mode was {mode:o} and is {_mode(place):o}")
    if writable or code == 0:
        _done(code, err)
        _holds(place, command)
    else:
        law(code == 1 and place.read_bytes() == OLD, f"exit code {code}: {err}")


def _link(case: Case, command: str) -> None:
    """A link stays one, however many lead to the file, which may be in another folder or not there yet."""
    (case.folder / "folder").mkdir()
    place, steps = case.folder / "folder" / "real", case.rng.randint(1, 3)
    if there := case.rng.random() < 0.6:
        place.write_bytes(OLD)
        place.chmod(0o600)
    target: Path = Path("folder/real")
    for step in range(1, steps):
        (case.folder / f"link{step}").symlink_to(target)
        target = Path(f"link{step}")
    link = case.folder / "out"
    link.symlink_to(target if case.rng.random() < 0.5 else case.folder / target)
    case.note(f"{steps} links to a file that is {'there' if there else 'not there'}")
    code, _, err = _ran(case, command)
    law(link.is_symlink(), "the link is replaced")
    _done(code, err)
    _holds(place, command)
    law(not there or _mode(place) == 0o600, "the mode behind a link has changed")
    law(names_in(case.folder / "folder") == {"real"}, "files are left behind")


def _loop(case: Case, command: str) -> None:
    (case.folder / "out").symlink_to("out")
    code, _, err = _ran(case, command)
    law(code == 1 and "Error" in err and (case.folder / "out").is_symlink(), f"exit code {code}: {err}")


def _folder(case: Case, command: str) -> None:
    (case.folder / "out").mkdir()
    code, _, err = _ran(case, command)
    law(code == 1 and "out" in err and not names_in(case.folder / "out"), f"exit code {code}: {err}")


def _closed_folder(case: Case, command: str) -> None:
    (case.folder / "folder").mkdir()
    (case.folder / "folder" / "out").write_bytes(OLD)
    (case.folder / "folder").chmod(0o500)
    code, _, err = _ran(case, command, out="folder/out")
    held = (case.folder / "folder" / "out").read_bytes()
    law((code, held) in {(0, expected(command)), (1, OLD)}, f"exit code {code}: {err}")


# ---- devices and pipes ---------------------------------------------------------------------------------------


def _full(case: Case, command: str) -> None:
    place = case.folder / "out"
    if not character_device(place, "full"):
        return
    code, _, err = _ran(case, command)
    law(place.is_char_device(), "the device is replaced")
    law(code == 1 and "out" in err, f"exit code {code}: {err}")


def _null(case: Case, command: str) -> None:
    place = case.folder / "out"
    if not character_device(place, "null"):
        return
    code, _, err = _ran(case, command)
    law(place.is_char_device(), "the device is replaced")
    _done(code, err)


def _pipe(case: Case, command: str) -> None:
    place, got = case.folder / "out", case.folder / "got"
    os.mkfifo(place)
    with _helper(f"cat {place} > {got}") as reader:
        code, _, err = _ran(case, command)
        law(place.is_fifo(), "the pipe is replaced")
        _done(code, err)
        reader.wait(SECONDS)
    _holds(got, command)


def _broken_pipe(case: Case, command: str) -> None:
    place = case.folder / "out"
    os.mkfifo(place)
    with _helper(f"head -c 1 {place} > /dev/null"):
        code, _, err = _ran(case, command)
    law(place.is_fifo(), "the pipe is replaced")
    law(code in {0, 1}, f"exit code {code}: {err}")


def _descriptor(case: Case, command: str) -> None:
    """As a shell writes ``-o >(cat)``."""
    ours, theirs = os.pipe()
    with os.fdopen(ours, "rb") as reader:
        process = start(
            [w.format(table="table.csv", model="model.jw", out=f"/dev/fd/{theirs}") for w in COMMANDS[command]],
            cwd=case.folder,
            pass_fds=[theirs],
        )
        os.close(theirs)
        try:
            got = reader.read()
        finally:
            code, _, err = finish(process, SECONDS)
    _done(code, err)
    law(got == expected(command), "the pipe has not had all of the result")


def _standard_output(case: Case, command: str) -> None:
    """A link such as /dev/stdout."""
    (case.folder / "out").symlink_to("/proc/self/fd/1")
    code, out, err = _ran(case, command)
    law((case.folder / "out").is_symlink(), "the link is replaced")
    _done(code, err)
    law(out == expected(command), "standard output has not had all of the result")


def _piped_table(case: Case, command: str) -> None:
    _from_pipe(case, command, "table" if command != "sample" else "model")


def _piped_model(case: Case, command: str) -> None:
    _from_pipe(case, command, "table" if command == "fit" else "model")


def _from_pipe(case: Case, command: str, which: str) -> None:
    """An input that can be read but once: all of it is taken, or it is refused in a sentence."""
    place = case.folder / "pipe"
    os.mkfifo(place)
    source = {"table": "table.csv", "model": "model.jw"}[which]
    with _helper(f"cat {case.folder / source} > {place}"):
        code, _, err = _ran(case, command, **{which: "pipe"})
    if code:
        law(code == 1 and "pipe" in err, f"exit code {code}: {err}")
    else:
        _holds(case.folder / "out", command)


@contextmanager
def _helper(line: str) -> Iterator[subprocess.Popen]:
    """Run a line of shell beside a command, and end it with its children."""
    with subprocess.Popen(["sh", "-c", f"exec 2> /dev/null; {line}"], start_new_session=True) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)


KINDS = {
    "new": _new,
    "old": _old,
    "link": _link,
    "loop": _loop,
    "folder": _folder,
    "closed folder": _closed_folder,
    "full": _full,
    "null": _null,
    "pipe": _pipe,
    "broken pipe": _broken_pipe,
    "descriptor": _descriptor,
    "standard output": _standard_output,
    "piped table": _piped_table,
    "piped model": _piped_model,
}
