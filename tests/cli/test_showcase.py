"""Pictures, experiments, benchmarks, and the demonstration."""

import shlex
from pathlib import Path

import pytest
from tests.cli.cases import run


@pytest.mark.parametrize(
    "args", [["monthly pay"], ["age, monthly pay | sex=F"], ["sex, age, job"], [], ["age", "--components"]]
)
def test_plots(model, table, tmp_path, args):
    data = [] if "--components" in args or not args else ["--data", table]
    run("plot", model, *args, *data, "-o", tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_plots_refuse(model, tmp_path):
    refusal = run("plot", model, "-o", tmp_path / "p.doc", code=2).stderr
    assert "does not end" in " ".join(refusal.replace("│", " ").split())  # wherever the box breaks its lines
    assert "Name variables" in run("plot", model, "P(age > 3)", "-o", tmp_path / "p.png", code=2).stderr
    assert "draws one variable" in run("plot", model, "--components", "-o", tmp_path / "p.png", code=2).stderr


def test_reproduce_calls_the_experiments(monkeypatch, tmp_path):
    def reproduce(names, *, quick, folder, progress):
        progress(0, 1, "")
        progress(1, 1, "toy: 1")
        return f"{folder}/{'-'.join(names)}-{quick}.md"

    monkeypatch.setattr("jointwise.experiments.reproduce", reproduce)
    result = run("reproduce", "toy", "--quick", "--folder", "there")
    assert result.stdout == "there/toy-True.md\n"
    assert "1 of 1: toy: 1" in result.stderr


def test_reproduce_knows_its_experiments():
    assert "There is no experiment 'nothing'" in run("reproduce", "nothing", code=1).stderr


def test_bench_needs_a_checkout(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert "checkout" in run("bench", "accuracy", code=1).stderr
    (tmp_path / "benchmarks").mkdir()
    (tmp_path / "benchmarks" / "__main__.py").write_text("import sys; sys.exit(len(sys.argv))")
    run("bench", "a", "b", code=3)


@pytest.mark.slow
def test_demo(tmp_path):
    shown = run("demo", "--folder", tmp_path / "demo").stdout
    assert shown.count("$ jointwise") == 7
    assert (tmp_path / "demo" / "filled.csv").exists()


@pytest.mark.slow
def test_the_commands_of_the_readme_and_of_the_first_page_work(tmp_path, monkeypatch):
    root = Path(__file__).parents[2]
    pages = [root / "README.md", root / "docs" / "start" / "ten-minutes.md"]
    lines = [line for page in pages for line in page.read_text().splitlines() if line.startswith("jointwise ")]
    commands = list(dict.fromkeys(lines))
    assert len(commands) >= 12
    run("demo", "--folder", tmp_path)
    monkeypatch.chdir(tmp_path)
    for command in commands:
        run(*shlex.split(command)[1:])
    assert {"people.jw", "drawn.csv", "filled.csv", "jobs.csv", "pair.png"} <= {
        path.name for path in tmp_path.iterdir()
    }
