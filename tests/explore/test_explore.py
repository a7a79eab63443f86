"""What a page is made of, without a browser: the packed model, cells, the file, the picture, the command."""

import base64
import hashlib
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.cli.cases import run
from tests.explore.cases import ATTACK, NAMES, hostile, large, people
from tests.explore.parity import random_block

from jointwise.dictionary import Dictionary
from jointwise.exceptions import DataOnPageWarning, InputError, MissingDependencyError
from jointwise.explore import page, picture, sampled, write_page
from jointwise.explore.cells import MOST_CELLS, MarginLaw, cells_of
from jointwise.explore.container import packed, unpacked
from jointwise.explore.export import all_cells, exported, is_windowed
from jointwise.explore.widget import evidence_of, known_of
from jointwise.joint import JointDensity
from jointwise.joint.margin import Margin
from jointwise.tables.variables import Variable


@given(
    st.lists(
        arrays.arrays(
            st.sampled_from([np.float64, np.float32, np.int32]),
            arrays.array_shapes(min_dims=1, max_dims=3, min_side=0),
        ),
        max_size=4,
    ),
    st.text(),
)
def test_what_is_packed_is_unpacked(values, text):
    found = unpacked(packed({"text": text, "deep": [{"values": each} for each in values]}))
    assert found["text"] == text
    for each, before in zip(found["deep"], values, strict=True):
        assert each["values"].dtype == before.dtype
        np.testing.assert_array_equal(each["values"], before)


def test_equal_models_give_equal_pages():
    assert page(people(), "a") == page(people(), "a")


@given(st.floats(-1e6, 1e6), st.floats(1e-6, 1e6), st.sampled_from(["plain", "stepped", "integer", "date", "datetime"]))
def test_cells_cover_what_is_likely(centre, scale, sort):
    variable = {
        "plain": Variable("x", "continuous"),
        "stepped": Variable("x", "continuous", step=0.5),
        "integer": Variable("x", "integer"),
        "date": Variable("x", "continuous", dtype="date", step=1.0),
        "datetime": Variable("x", "continuous", dtype="datetime[us]"),
    }[sort]
    atoms = Dictionary.grid("gaussian", centre, centre, n=1, scale=scale)
    law = MarginLaw(Margin(atoms.on_lattice() if sort == "integer" else atoms, np.ones(1)))
    cells = cells_of(variable, law)
    assert 2 <= len(cells.edges) <= MOST_CELLS + 3
    assert (np.diff(cells.edges) > 0).all()
    low, high = law.quantiles(np.array([0.001, 0.999]))
    assert cells.edges[0] <= low and cells.edges[-1] >= high  # noqa: PT018
    if sort in {"stepped", "integer"}:  # no value that the variable can take is an edge
        unit = variable.step or 1.0
        np.testing.assert_allclose(np.mod(cells.edges / unit, 1.0), 0.5, atol=1e-6)


def test_cells_are_a_partition():
    density = people()
    for n, cells in enumerate(all_cells(density)):
        if cells is not None:
            assert density.mixture.crosstab({n: cells.regions()}).sum() == pytest.approx(1.0)


def test_months_and_years_are_edges_of_dates():
    law = MarginLaw(Margin(Dictionary.uniforms([16_000.0, 19_000.0]), np.ones(1)))
    edges = cells_of(Variable("day", "continuous", dtype="date"), law).edges
    dates = np.datetime64("1970-01-01") + edges.astype(int)
    assert {str(date)[8:] for date in dates} == {"01"}


def test_the_export_holds_no_rows_and_shares_dictionaries():
    one = people()
    both = JointDensity.mix([one, one.condition({"pay": (0, None)})])
    content = exported(both)
    assert "rows" not in content
    assert len(content["dictionaries"]) < 2 * len(one.names)


def hashes(text):
    found = re.findall(r'<(script|style)(?: type="module")?>(.*?)</\1>', text, re.DOTALL)
    return {kind: "sha256-" + base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for kind, body in found}


def test_the_policy_names_the_script_and_the_style(tmp_path):
    text = write_page(people(), tmp_path / "people.html").read_text()
    assert "<title>people</title>" in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert policy.startswith("default-src 'none'; ")
    assert f"script-src '{hashes(text)['script']}'" in policy
    assert f"style-src '{hashes(text)['style']}'" in policy
    assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}  # the names of SVG and HTML
    assert "unsafe" not in policy


@pytest.mark.parametrize("title", [ATTACK, "a\u202eb", "\ud800", "x" * 10_000, "{policy}"])
def test_hostile_texts_stay_texts(tmp_path, title):
    text = write_page(hostile(), tmp_path / "hostile.html", title=title).read_text()
    assert "<img" not in text.split("<script ")[0]
    assert text.count("<script") == 2
    assert len(text.split("<title>")[1].split("</title>")[0]) < 1000
    assert unpacked(re.search(r'id="jointwise-model">([^<]*)', text)[1])["columns"][0]["name"] == ATTACK


def test_pictures_are_small_and_still():
    found = picture(hostile())
    assert "<img" not in found and "<script" not in found and "onload=" not in found.replace("&lt;svg/onload=", "")  # noqa: PT018
    assert len(found) < 60_000
    assert hostile()._repr_html_() == found
    assert "unknown" not in picture(people())
    assert "pay missing" not in picture(people())
    many = picture(JointDensity.mix([hostile()]))
    assert many.count("<svg") == len(NAMES)


def test_a_block_inside_windows_is_drawn_from_a_sample():
    density = random_block(np.random.default_rng(1))
    names = [v.name for v in density.schema if v.kind == "continuous"][:3]
    given = density.condition(dict.fromkeys(names, (-1.0, 2.0)))
    assert is_windowed(given)
    assert picture(given).count("<svg") == len(given.names)
    assert [cells is None for cells in all_cells(given)] == [v.categories is not None for v in given.schema]


def test_rows_go_along_only_with_a_warning(tmp_path):
    rows = people().sample(500, rng=0)
    with pytest.warns(DataOnPageWarning, match="holds 300 rows"):
        text = people().explore(tmp_path / "rows.html", data=rows).read_text()
    held = unpacked(re.search(r'id="jointwise-model">([^<]*)', text)[1])["rows"]
    assert held.shape == (300, len(people().schema.names))
    codes = sampled(np.array([[0.0, 0.0, -1.0, 0.0, -1.0, 0.0, 0.0]]), people().schema, np.random.default_rng(0))
    assert codes[0, 2] == -1.0
    assert np.isnan(codes[0, 4])


def test_large_matrices_are_written_shorter(monkeypatch):
    density = large(3, 3_000, 40)
    (whole,) = exported(density)["experts"]
    monkeypatch.setattr("jointwise.explore.export.LARGE", 1_000)
    (short,) = exported(density)["experts"]
    written = short["coefficients"][0]
    assert isinstance(short["coefficients"][1], np.ndarray)
    b, weights = density.mixture.coefficients[0], density.mixture.weights
    restored = (written["ratios"] * written["margin"]).T
    error = np.abs(restored - b) / np.maximum(b, 1e-25)
    rare = b @ weights < 1e-3
    assert rare.any()
    assert not rare.all()
    assert error[rare].max() < 6.2e-5
    assert error[~rare].max() < 2e-7
    assert len(packed({"a": short["coefficients"][0]})) < 0.75 * len(packed({"a": whole["coefficients"][0]}))


def test_evidence_of_the_widget():
    schema = people().schema
    evidence = {
        "pay": (10, None),
        "sex": "F",
        "town": {"town 3", "town 1"},
        "children": 2,
        "joined": ("2020-01-01", None),
    }
    known = known_of(schema, evidence)
    assert known["town"] == {"codes": [1, 3]}
    back = evidence_of(schema, known)
    assert known_of(schema, back) == known
    assert back["sex"] == "F"
    assert known_of(schema, {"pay": None}) == {"pay missing": {"codes": [1]}}
    assert known_of(schema, {"children": {4, 2}}) == {"children": {"codes": [2, 4]}}
    assert evidence_of(schema, {"children": {"codes": [2, 4]}}) == {"children": {2, 4}}
    with pytest.raises(InputError, match="one value or one range"):
        known_of(schema, {"pay": {1, 2}})
    with pytest.raises(InputError, match="empty"):
        known_of(schema, {"town": set()})


def test_the_widget_says_what_it_needs(monkeypatch):
    monkeypatch.setitem(sys.modules, "anywidget", None)
    from jointwise.explore import widget as module

    sys.modules["jointwise.explore.widget"]._class.cache_clear()
    with pytest.raises(MissingDependencyError, match="pip install 'jointwise\\[explore\\]'"):
        module(people())
    sys.modules["jointwise.explore.widget"]._class.cache_clear()


@pytest.mark.page
def test_the_widget_follows_its_evidence():
    pytest.importorskip("anywidget")
    shown = people().explore(title="People")
    shown.evidence = {"sex": "F", "pay": (None, 50)}
    assert shown._known == {"sex": {"codes": [0]}, "pay": {"ends": [None, 50.0]}}
    assert shown.given.names == tuple(name for name in people().names if name != "sex")
    shown._known = {"children": {"ends": [2.0, 2.0]}}
    assert shown.evidence == {"children": 2}
    with pytest.raises(Exception, match="sexx"):
        shown.evidence = {"sexx": "F"}
    assert shown.evidence == {"children": 2}


def test_the_command(tmp_path, model, table, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run("explore", model, "-o", tmp_path / "p.html", "--open")
    assert opened == [(tmp_path / "p.html").as_uri()]
    text = (tmp_path / "p.html").read_text()
    assert "<title>people</title>" in text
    noted = run("explore", model, "-o", tmp_path / "q.html", "--data", table, "--title", "People <3").stderr
    assert "holds 240 rows" in " ".join(noted.split())
    assert "<title>People &lt;3</title>" in (tmp_path / "q.html").read_text()
    assert "cannot be written" in run("explore", model, "-o", tmp_path / "none" / "p.html", code=1).stderr
