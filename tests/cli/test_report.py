"""The page about a model: one file, every text escaped, nothing that runs or is fetched."""

import base64
import html
import re
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from tests.cli.cases import people, run, write_csv

from jointwise import Dictionary, JointDensity
from jointwise.cli import report
from jointwise.cli.page import escaped, table
from jointwise.joint.product import ProductMixture
from jointwise.tables.variables import Schema, Variable

HOSTILE = (
    '</script><img src=x onerror="alert(1)">',
    "right\u202eleft\u2066\x00\x07 to $x$",
    "'\" onmouseover=alert(1) x='",
    "long " * 2_000,
    "&lt;b&gt; <!-- ]]>",
)


class Page(HTMLParser):
    """Tags, attributes and texts of a page; open tags must be closed in order."""

    VOID = frozenset({"meta", "img", "br"})

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self._open = [], [], [], []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag):
        assert self._open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def pictures(page):
    sources = [value for name, value in page.attributes if name == "src"]
    assert all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    return [base64.b64decode(source.partition(",")[2]).decode() for source in sources]


def assert_safe(page):
    """Only tags of ours, no handlers, no addresses but places of the page and data."""
    ours = {
        *("html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "h3", "nav", "a", "main", "section"),
        *(
            "dl",
            "dt",
            "dd",
            "p",
            "div",
            "figure",
            "img",
            "table",
            "thead",
            "tbody",
            "tr",
            "th",
            "td",
            "ul",
            "li",
            "bdi",
        ),
    }
    assert set(page.tags) <= ours
    names = {"lang", "charset", "name", "content", "http-equiv", "id", "class", "href", "alt", "src"}
    assert {name for name, _ in page.attributes} <= names
    assert all(value.startswith("#") for name, value in page.attributes if name == "href")
    for picture in pictures(page):
        root = ET.fromstring(picture)
        tags = {element.tag.rpartition("}")[2] for element in root.iter()}
        assert not tags & {"script", "foreignObject", "a", "iframe"}
        assert not re.search(r'href="(?!#|data:image/png)', picture)


@pytest.fixture(scope="module")
def rows():
    columns = people(80, seed=1)
    columns["monthly pay"][7], columns["job"][7] = "90", "cook"
    columns["job"][9] = "astronaut"
    return columns


@pytest.fixture(scope="module")
def written(model, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    path = write_csv(folder / "rows.csv", rows)
    out = folder / "report.html"
    result = run("report", model, path, "-o", out)
    assert result.stdout == ""
    return out.read_text()


def test_the_page_has_all_sections_and_figures(written):
    page = Page(written)
    assert_safe(page)
    text = " ".join(page.texts)
    for words in ("Columns", "Dependences", "Check against the rows", "Oddest rows", "mutual information"):
        assert words.lower() in text.lower()
    assert "80 of " in text
    assert "impossible rows" in text
    assert "monthly pay = 90; expected" in text
    assert "job = astronaut" in text
    assert len(pictures(page)) >= 4 + 1 + 1
    assert "http" not in written.replace("http-equiv", "")
    assert "<script" not in written


def test_without_rows_there_is_no_check(model):
    result = run("report", model)
    page = Page(result.stdout)
    assert_safe(page)
    assert "Oddest rows" not in " ".join(page.texts)
    assert result.stdout == run("report", model).stdout  # the same page each time


def hostile_density():
    """Columns and categories with names that would break a page."""
    names = HOSTILE[:3]
    variables = (
        Variable(names[0], "categorical", categories=HOSTILE, dtype="string"),
        Variable(names[1], "continuous"),
        Variable(names[2], "categorical", categories=("\u202e", "$\\frac{"), dtype="string"),
    )
    rng = np.random.default_rng(0)
    atoms = (Dictionary.categories(5), Dictionary.grid("gaussian", 0, 1, n=2, scale=1), Dictionary.categories(2))
    shares = [rng.dirichlet(np.ones(d.n_atoms), 2).T for d in atoms]
    return JointDensity(Schema(variables, "dict"), ProductMixture([0.5, 0.5], shares, atoms))


def test_hostile_names_are_only_text(tmp_path):
    density = hostile_density()
    density.save(tmp_path / "m.jw")
    drawn = tmp_path / "rows.jsonl"
    run("sample", tmp_path / "m.jw", "-n", 40, "-o", drawn, "--seed", 0)
    run("report", tmp_path / "m.jw", drawn, "-o", tmp_path / "r.html")
    written = (tmp_path / "r.html").read_text()
    page = Page(written)
    assert_safe(page)
    assert "<img src=x" not in written
    assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08]", written)
    assert "long " * 100 not in written
    assert any('</script><img src=x onerror="alert(1)">' in text for text in page.texts)


def test_conditions_are_written_on_the_figure_whatever_they_hold(tmp_path, model):
    hostile_density().save(tmp_path / "m.jw")
    third = HOSTILE[2].replace("'", "\\'")
    question = f"\"{HOSTILE[1]}\" | '{third}' = '$\\\\frac{{'"
    run("plot", tmp_path / "m.jw", question, "-o", tmp_path / "p.svg")
    comments = (tmp_path / "p.svg").read_text()
    ET.fromstring(comments)
    assert "<!-- given " in comments
    for names in ("age, monthly pay", "age", "age, monthly pay, job"):
        run("plot", model, f"{names} | sex=F", "-o", tmp_path / "p.svg")
        assert "<!-- given sex=F -->" in (tmp_path / "p.svg").read_text()
    run("plot", model, "age", "-o", tmp_path / "p.svg")
    assert "given" not in (tmp_path / "p.svg").read_text()


def test_wide_models_and_refusals(model, tmp_path, monkeypatch):
    monkeypatch.setattr(report, "MOST_FIGURES", 2)
    monkeypatch.setattr(report, "MOST_PAIRED", 3)
    text = " ".join(Page(run("report", model).stdout).texts)
    assert "The first 3 of 4 columns are compared." in text
    assert "no folder" in run("report", model, "-o", tmp_path / "none" / "r.html", code=1).stderr
    assert "both" in run("report", "-", "-", code=2).stderr
    other = write_csv(tmp_path / "o.csv", {"x": ["1"]})
    assert "lacks the model's columns" in run("report", model, other, code=1).stderr


def test_one_column_and_no_rows(tmp_path):
    x = Variable("x", "continuous")
    density = JointDensity(
        Schema((x,), "dict"), ProductMixture([1.0], [[[0.5], [0.5]]], [Dictionary.grid("gaussian", 0, 1, n=2, scale=1)])
    )
    density.save(tmp_path / "m.jw")
    (tmp_path / "t.csv").write_text("x\n")
    text = " ".join(Page(run("report", tmp_path / "m.jw", tmp_path / "t.csv").stdout).texts)
    assert "0 of " in text
    assert "Dependences" not in text


def test_tables_and_texts_of_the_page():
    assert escaped(HOSTILE[0]) == f"<bdi>{html.escape(HOSTILE[0])}</bdi>"
    made = table({"<n>": [1, 2.5], "t": ["<", None]})
    assert '<th class="number"><bdi>&lt;n&gt;</bdi></th>' in made
    assert "<td><bdi>&lt;</bdi></td>" in made


def test_info_counts_rows_and_gaps(model, rows, tmp_path):
    path = write_csv(tmp_path / "rows.csv", rows)
    shown = run("info", model, "--data", path).stdout
    gaps = {name: sum(not cell for cell in cells) for name, cells in rows.items()}
    assert f"rows: 80 of {path}" in shown
    assert f"gaps: {sum(gaps.values())} cells" in shown
    assert "impossible rows: 1" in shown
    assert "mean log-density of a row: -" in shown
    found = run("info", model, "--data", path, "--format", "csv").stdout.splitlines()
    assert [int(line.split(",")[found[0].split(",").index("gaps")]) for line in found[2:3]] == [gaps["age"]]
    assert "gaps" not in run("info", model).stdout
