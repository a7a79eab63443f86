"""The command as its own process: pipes, exit codes, kills, and missing packages."""

import os
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import jointwise

SOURCE = Path(jointwise.__file__).parents[1]
COMMAND = [sys.executable, "-c", "from jointwise.cli import main; main()"]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}


def start(*args, command=COMMAND, **options):
    return subprocess.Popen(
        [*command, *map(str, args)],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **options,
    )


def finish(process, data=None):
    out, err = process.communicate(data, timeout=120)
    return process.returncode, out, err.decode()


@pytest.mark.slow
def test_a_pipe_from_fit_to_answers(table, tmp_path):
    data = Path(table).read_bytes()
    code, model, err = finish(start("fit", "-", "-o", "-", "--n-components", 2), data)
    assert code == 0, err
    assert model.startswith(b"JOINTWISE\n")
    code, drawn, err = finish(start("sample", "-", "-n", 5, "--format", "jsonl"), model)
    assert (code, drawn.count(b"\n")) == (0, 5), err
    path = tmp_path / "m.jw"
    path.write_bytes(model)
    code, scores, _ = finish(start("score", path, "-"), drawn)
    assert (code, scores.count(b"\n")) == (0, 6)


def test_exit_codes_and_streams(model):
    code, out, err = finish(start("query", "nowhere.jw", "sex"))
    assert (code, out, err) == (1, b"", "Error: There is no file nowhere.jw.\n")
    code, out, err = finish(start("query", model, "sex | "))
    assert (code, out) == (2, b"")
    assert err.startswith("Error: Expected the name of a variable here.")
    code, out, err = finish(start("query", "nowhere.jw", "sex", "--debug"))
    assert (code, out) == (1, b"")
    assert "Traceback" in err


def test_a_reader_that_goes_away(model):
    with start("sample", model, "-n", 300_000) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_a_kill_leaves_nothing_half_written(model, tmp_path):
    out = tmp_path / "drawn.csv"
    out.write_text("before")
    process = start("sample", model, "-n", 100_000_000, "-o", out)
    while len(list(tmp_path.iterdir())) < 2:
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    code, _, _ = finish(process)
    assert code == 143
    assert out.read_text() == "before"
    assert list(tmp_path.iterdir()) == [out]


def test_an_interrupt_is_one_line(model, tmp_path):
    process = start("sample", model, "-n", 100_000_000, "-o", tmp_path / "drawn.csv")
    while not list(tmp_path.iterdir()):
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    code, out, err = finish(process)
    assert (code, out, err) == (130, b"", "Interrupted; no result was written.\n")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wait", [0.0, 0.1, 0.3])
def test_an_interrupt_during_import_is_one_line(model, wait):
    """The first import prints a line, which shows that Python has started."""
    command = [sys.executable, "-c", "from jointwise.cli import main\nprint('on', flush=True)\nmain()"]
    process = start("sample", model, "-n", 10_000_000, "-o", os.devnull, command=command)
    process.stdout.readline()
    time.sleep(0.02 + wait)
    process.send_signal(signal.SIGINT)
    code, _, err = finish(process)
    assert (code, err) == (130, "Interrupted; no result was written.\n")


def shell(line, *args):
    """Run a line of bash in which jw is the command and $1, $2, ... are the arguments; it may close streams."""
    script = f'jw() {{ {shlex.join(COMMAND)} "$@"; }}\n{line}'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *map(str, args)], env=ENVIRONMENT, capture_output=True, timeout=120, check=False
    )
    return done.returncode, done.stdout, done.stderr.decode()


needs_bash = pytest.mark.skipif(
    shutil.which("bash") is None or not Path("/dev/fd").exists() or not Path("/dev/full").exists(),
    reason="needs bash and the devices of Linux",
)


@needs_bash
@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("jw fit - -o $2 <&-", 1, "Error: Standard input is closed, so there is nothing to read; name a file.\n"),
        ("jw query $1 sex >&-", 1, "Error: Standard output is closed, so the result cannot be written.\n"),
        ("jw --help >&-", 1, "Error: Standard output is closed, so the result cannot be written.\n"),
        ("jw query $1 sex 2>&- >/dev/null <&-", 0, ""),
        ("jw sample $1 -n 3 -o $2 >&- <&-", 0, ""),
        ("jw sample $1 -n 30000 >/dev/full", 1, "Error: standard output: No space left on device.\n"),
        ("jw --version >/dev/full", 1, "Error: standard output: No space left on device.\n"),
    ],
)
def test_closed_and_full_streams(model, tmp_path, line, code, words):
    assert shell(line, model, tmp_path / "out.csv") == (code, b"", words)


@pytest.mark.slow
@needs_bash
def test_pipes_of_the_shell(model, table, tmp_path):
    code, out, err = shell("jw query <(cat $1) 'P(sex=F)'", model)
    assert (code, err) == (0, "")
    assert out == shell("jw query $1 'P(sex=F)'", model)[1]
    code, _, err = shell("jw fit <(cat $1) <(cat $1) --n-components 2 -o $2", table, tmp_path / "m.jw")
    assert code == 0, err
    assert shell("jw sample $1 -n 3 -o >(wc -l)", model)[:2] == (0, b"4\n")
    assert shell("jw sample $1 -n 3 -o /dev/stdout --format jsonl | wc -l", model)[:2] == (0, b"3\n")
    code, out, _ = shell("jw fit $1 --n-components 2 -o >(head -c 9)", table)
    assert (code, out) == (0, b"JOINTWISE")
    assert "is empty" in shell("jw query <(true) sex", model)[2]


@pytest.mark.slow
@needs_bash
def test_pipes_with_names_links_and_modes(model, table, tmp_path):
    pipe, link, out = (tmp_path / name for name in ("pipe", "link.csv", "far.csv"))
    os.mkfifo(pipe)
    out.write_text("old")
    out.chmod(0o600)
    link.symlink_to(out)
    code, drawn, err = shell("cat $2 & jw sample $1 -n 3 -o $2; code=$?; wait; exit $code", model, pipe)
    assert (code, drawn.count(b"\n"), err) == (0, 4, "")
    assert pipe.is_fifo()
    code, _, err = shell("cat $1 > $2 & jw fit $2 --n-components 2 -o $3", table, pipe, tmp_path / "m.jw")
    assert code == 0, err
    code, answer, err = shell("cat $1 > $2 & jw query $2 'P(sex=F)'", tmp_path / "m.jw", pipe)
    assert (code, 0 < float(answer) < 1, err) == (0, True, "")
    assert shell("jw sample $1 -n 3 -o $2", model, link)[0] == 0
    assert link.is_symlink()
    assert (out.read_text().count("\n"), stat.S_IMODE(out.stat().st_mode)) == (4, 0o600)


@pytest.mark.slow
@needs_bash
def test_a_full_device_is_named_and_stays_one(model, table, tmp_path):
    full = tmp_path / "full"
    full.symlink_to("/dev/full")  # a failure must not replace the device itself
    for line in ("jw sample $1 -n 3 -o $2", "jw fit $3 --n-components 2 -o $2"):
        code, out, err = shell(line, model, full, table)
        assert (code, out, err) == (1, b"", f"Error: {full}: No space left on device.\n")
    assert stat.S_ISCHR(full.stat().st_mode)


@pytest.mark.slow
@needs_bash
def test_bytes_that_are_no_text(model, table, tmp_path):
    """Arguments and file names that are not UTF-8, and a terminal with ASCII only."""
    code, _, err = shell("jw query $1 $'\\xff'", model)
    assert (code, err.split(".")[0]) == (2, r"Error: Unknown variable '\udcff'")
    assert shell("jw query $'\\xff.jw' sex") == (1, b"", "Error: There is no file \\udcff.jw.\n")
    code, _, err = shell("cd $2 && cp $1 $'\\xff.jw' && jw sample $'\\xff.jw' -n 2 -o $'\\xff.csv'", model, tmp_path)
    assert (code, err) == (0, "")
    code, out, err = shell("PYTHONIOENCODING=ascii jw query $1 sex", model)
    assert (code, err) == (0, "")
    assert out.isascii()


def test_a_bug_is_a_sentence_too(model):
    broken = "from jointwise.cli import commands, main\ncommands.load_with_table = None\nmain()"
    command = [sys.executable, "-c", broken]
    code, out, err = finish(start("info", model, command=command))
    assert (code, out) == (1, b"")
    assert err.startswith("Error: jointwise itself went wrong (TypeError")
    assert "Traceback" in finish(start("info", model, "--debug", command=command))[2]


def test_typer_is_asked_for_by_name():
    without = "import sys; sys.modules['typer'] = None\nfrom jointwise.cli import main; main()"
    code, out, err = finish(start(command=[sys.executable, "-c", without]))
    assert (code, out) == (1, b"")
    assert err == "Error: The command jointwise needs typer, which is not installed: pip install 'jointwise[cli]'\n"
