"""The pages say what the code does: constants by value, and links to files that exist."""

import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import jointwise

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
DECISIONS = DOCS / "how-it-decides.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]

# | rule | `constant` | `value` | measured | `where` |
ROW = re.compile(r"\| (?P<rule>[^|]+) \| `(?P<name>[^`|]+)` \| `(?P<value>[^`|]+)` \| [^|]+ \| `(?P<where>[^`|]+)` \|")
PARAMETER = re.compile(r"(\w+)\((\w+)\)")


def rows():
    """Rows of the page's tables, without their heads."""
    lines = [line for line in DECISIONS.read_text().splitlines() if line.startswith("| ")]
    return [line for line in lines if not line.startswith(("| rule |", "| --- |"))]


def named(name, where):
    """The object that a row names: a constant of a module or class, or the default of an estimator's parameter."""
    if match := PARAMETER.fullmatch(name):
        return inspect.signature(getattr(jointwise, match[1])).parameters[match[2]].default
    found = import_module(f"jointwise.{where.removesuffix('.py').replace('/', '.')}")
    for part in name.split("."):
        found = getattr(found, part)
    return found


def test_every_row_can_be_read():
    without_constant = re.compile(r"\| [^|]+ \| - \| \| [^|]+ \| `[^`|]+` \|")
    unread = [row for row in rows() if not ROW.fullmatch(row) and not without_constant.fullmatch(row)]
    assert len(rows()) > 50
    assert not unread


@pytest.mark.parametrize(
    ("name", "value", "where"), [match.group("name", "value", "where") for match in map(ROW.fullmatch, rows()) if match]
)
def test_constants_have_the_values_that_the_page_names(name, value, where):
    expected = eval(value, {"__builtins__": {}})  # numbers and tuples, with powers
    found = named(name, where)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("where", sorted({row.rsplit("`", 2)[1] for row in rows()}))
def test_places_exist(where):
    assert (ROOT / "src" / "jointwise" / where).is_file()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text())
    assert all("://" in link or (page.parent / link).exists() for link in links)


# ---- the site ------------------------------------------------------------------------------------------------

# What a new user asks, the page that answers, and words of the answer. The start page has each question with its link.
READERS = {
    "How do I install it?": ("start/install.md", "pip install ."),
    "Which class do I use?": ("start/which-estimator.md", "Take the first line that fits."),
    "My table has gaps. Do I fill them first?": ("missing.md", "a missing cell is integrated out"),
    "A column was read as the wrong kind.": ("tables.md", 'kinds={"rooms": "categorical"}'),
    "How do I ask for a probability given something?": ("questions.md", "What is given follows a bar"),
    "How sure is a prediction?": ("rows.md", "An interval of 80% lies between the quantiles 10% and 90%"),
    "Why is this row odd?": ("guide/anomalies.md", "density.explain(row)"),
    "My file does not fit in memory.": ("large-tables.md", "pyarrow.dataset"),
    "A warning appeared. Is the model wrong?": ("troubleshooting.md", "A warning leaves you with a model."),
    "Are the answers exact?": ("experts.md", "## What is exact"),
}


@pytest.mark.parametrize("question", READERS)
def test_a_reader_finds_the_answer_by_one_click(question):
    page, words = READERS[question]
    (row,) = [line for line in (DOCS / "index.md").read_text().splitlines() if line.startswith(f"| {question} |")]
    assert f"]({page}" in row
    assert words in (DOCS / page).read_text()


def test_the_table_of_questions_is_this_one():
    table = (DOCS / "index.md").read_text().split("| question | answer |")[1]
    assert re.findall(r"^\| ([^|]+) \| ", table, flags=re.MULTILINE)[1:] == list(READERS)


def reference():
    """Yield every name of the page of the reference with its module."""
    module = ""
    for line in (DOCS / "api.md").read_text().splitlines():
        if line.startswith(".. currentmodule::"):
            module = line.split()[-1]
        elif re.fullmatch(r"   \w+", line):
            yield module, line.strip()


@pytest.mark.parametrize("module", ["jointwise", "jointwise.datasets", "jointwise.plots", "jointwise.relatives"])
def test_the_reference_has_every_public_name(module):
    assert {name for where, name in reference() if where == module} == set(import_module(module).__all__)


@pytest.mark.parametrize(("module", "name"), [each for each in reference() if "exceptions" not in each[0]])
def test_every_name_of_the_reference_has_an_example(module, name):
    assert ">>>" in inspect.getdoc(getattr(import_module(module), name))


def test_every_example_runs():
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/*/*.md"), *ROOT.glob("src/**/*.py")]
    assert not [str(page) for page in pages if "doctest: +SKIP" in page.read_text()]


@pytest.mark.parametrize("name", [name for module, name in reference() if "exceptions" in module])
def test_every_error_and_warning_has_a_remedy(name):
    if name != "JointwiseError":  # the base of all
        assert f"### `{name}`" in (DOCS / "troubleshooting.md").read_text()


def test_every_script_of_the_gallery_has_a_place_in_its_order():
    order = (DOCS / "_ext" / "gallery_order.py").read_text()
    scripts = [path.stem.removeprefix("plot_") for path in (ROOT / "examples").glob("plot_*.py")]
    assert len(scripts) >= 15
    assert all(f'"{name}"' in order for name in scripts)


def test_a_broken_link_of_the_site_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here">b</a><a href="#no">c</a><img src="https://elsewhere/x.png">'
    )
    (tmp_path / "b.html").write_text('<p id="here">b</p><a href="c.html">c</a>')
    checked = subprocess.run(
        [sys.executable, DOCS / "_ext" / "links.py", tmp_path], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 1
    assert sorted(checked.stdout.splitlines()) == [
        "a.html: fetches https://elsewhere/x.png",
        "a.html: no such place: #no",
        "b.html: no such file: c.html",
    ]
