"""The command as a process of its own: pipes, exit codes, kills, and packages that are not there."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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


def test_a_pipe_from_fit_to_answers(table, tmp_path):
    data = Path(table).read_bytes()
    code, model, err = finish(start("fit", "-", "-o", "-", "--rank", 2), data)
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
    assert err.startswith("Error: Here should be the name of a variable.")
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


def test_typer_is_asked_for_by_name():
    without = "import sys; sys.modules['typer'] = None\nfrom jointwise.cli import main; main()"
    code, out, err = finish(start(command=[sys.executable, "-c", without]))
    assert (code, out) == (1, b"")
    assert err == "Error: The command jointwise needs typer, which is not installed: pip install 'jointwise[cli]'\n"
