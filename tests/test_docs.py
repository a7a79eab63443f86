"""The pages say what the code does: constants by value, and links to files that exist."""

import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import jointwise

ROOT = Path(__file__).parents[1]
DECISIONS = ROOT / "docs" / "how-it-decides.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

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
