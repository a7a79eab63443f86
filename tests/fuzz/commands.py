"""The command: typed in this process, or started as one of its own."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.case import Case, law
from typer.testing import CliRunner

import jointwise
from jointwise.cli.app import app

SOURCE = Path(jointwise.__file__).parents[1]
IMPORT = "from jointwise.cli import main; "
MAIN = f"{IMPORT}main()"
# Tells its parent that `main` begins, through a pipe whose number comes as an argument: before, Python answers signals.
READY = "import os, sys; os.write(int(sys.argv[1]), b'.'); os.close(int(sys.argv.pop(1))); "
# What the command says of an error that it did not foresee.
UNFORESEEN = ("Traceback", "itself went wrong")
EXIT_CODES = (0, 1, 2)
# What a person may have to scroll through.
LONGEST_OUTPUT = 3_000_000
SECONDS = 60.0


def typed(case: Case, args: Sequence[str], data: bytes | None = None) -> Any:
    """Run the command here; it must end with a known code and without a traceback."""
    case.note(f"jointwise {' '.join(f'{arg!a:.200}' for arg in args)}")
    result = CliRunner().invoke(app, list(args), input=data)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    law(result.exit_code in EXIT_CODES, f"exit code {result.exit_code}")
    law(len(result.output) <= LONGEST_OUTPUT, f"an output of {len(result.output):,} characters")
    law(not any(words in result.stderr for words in UNFORESEEN), result.stderr[-2000:])
    return result


def environment(temporary: Path | None = None) -> dict[str, str]:
    """Return the environment of a process; its temporary files go to a folder of their own."""
    own = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return os.environ | own | ({} if temporary is None else {"TMPDIR": str(temporary)})


def start(args: Sequence[str], *, code: str = MAIN, temporary: Path | None = None, **options: Any) -> subprocess.Popen:
    """Start the command as a process."""
    options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([sys.executable, "-c", code, *args], env=environment(temporary), **options)


def finish(process: subprocess.Popen, seconds: float = SECONDS) -> tuple[int, bytes, str]:
    """Wait for a process; return its exit code and what it has written."""
    try:
        out, err = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        law(False, f"it hangs: not done after {seconds:g} s; {err.decode(errors='replace')[-1000:]}")
    text = err.decode(errors="replace")
    law(not any(words in text for words in UNFORESEEN), f"exit code {process.returncode}\n{text[-3000:]}")
    return process.returncode, out, text
