"""The text that tells what was fitted."""

import datetime as dt
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from tests.estimators.cases import QUICK, make_classifier, make_imputer

from jointwise import JUPAD, Dictionary, PairwiseMarginals, Profile
from jointwise.tables.variables import Schema

FRAME = pd.DataFrame({
    "size": [0.5, 1.5, 6.5, 7.5] * 25,
    "count": [1, 1, 2, 2] * 25,
    "colour": ["red", "red", "blue", "blue"] * 25,
    "day": [dt.date(2024, 1, 1 + n) for n in (0, 1, 2, 3)] * 25,
})  # fmt: skip
# Dictionaries by hand, so that the text does not hang on how they are chosen.
GIVEN = {
    "size": Dictionary.grid("gaussian", 1, 7, n=2, scale=1) + Dictionary.grid("laplace", 30, 40, n=2, scale=1),
    "day": Dictionary.grid("gaussian", 19723, 19727, n=2, scale=3),
}


def marginals(frame=FRAME):
    profile = Profile.of(frame)
    schema = profile.schema()
    return PairwiseMarginals.of(frame, schema, profile.axes(schema, 32))


def test_summary_of_a_fit_from_rows():
    model = JUPAD(n_components=2, beta=0.1, dictionaries=GIVEN, random_state=0).fit(FRAME)
    assert (
        model.summary()
        == f"""\
JUPAD: joint density of 4 columns
rows: 100
fit: likelihood of the rows
components: 2 kept of 2 at the start (given)
beta: 0.1 (given)
steps: {model.n_iter_}, converged
gain over independence: 1.651 nats per training row

column  kind         values                    step  atoms                     in use
size    continuous   0.5 to 7.5                0.5   2 gaussian + 2 laplace    4
count   integer      1 to 2                          2 point_mass + 1 lattice  2
colour  categorical  2 categories                    2 category                2
day     continuous   2024-01-01 to 2024-01-04  1     2 gaussian                2"""
    )


def test_a_chosen_prior_says_how():
    model = JUPAD(**QUICK).fit(FRAME)
    assert f"beta: {model.beta_:g} (by held-out likelihood)" in model.summary().splitlines()


@pytest.mark.parametrize(("method", "words"), [("pairs", "likelihood of pairs"), ("paper", "squared error of pairs")])
def test_summary_of_a_fit_from_pairs(method, words):
    model = JUPAD(**QUICK, method=method).fit(FRAME).fit_marginals(marginals())
    text = model.summary()
    assert f"\nfit: {words} of columns\ncomponents: 2 kept of 2 at the start\nsteps: " in text
    assert "beta" not in text
    assert "gain" not in text
    assert not hasattr(model, "beta_")
    assert text == JUPAD(**QUICK, method=method, n_bins=32).fit(FRAME).summary()


def test_summary_tells_independence():
    X = np.random.default_rng(2).normal(size=(300, 2))
    lines = JUPAD(random_state=0).fit(X).summary().splitlines()
    assert "gain over independence: 0.000 nats per training row" in lines
    sentence = "The columns show no dependence: the density is their independence."
    assert sentence in lines
    # with one component from the start nothing was found out
    assert sentence not in JUPAD(n_components=1, random_state=0).fit(X).summary()


def test_summary_tells_what_was_chosen_and_what_held_out_rows_say():
    X = np.repeat([[0.0], [5.0]], 150, axis=0) + np.random.default_rng(0).normal(size=(300, 2))
    text = JUPAD(random_state=0).fit(X).summary()
    assert "\nfit: likelihood of the rows, average of 5 models\n" in text
    assert re.search(r"\ncomponents: \d+ kept of 5 x \d+ at the start \(by held-out likelihood\)\n", text)
    held_out, alone = map(float, re.search(r"one model: (\S+); if the columns were independent: (\S+)", text).groups())
    assert held_out > alone + 0.5  # two clusters that are told apart gain log 2


def test_gain_is_that_of_the_training_rows():
    """Against densities: two categories that always agree gain log 2, here less what the prior takes."""
    model = JUPAD(n_components=2, beta=0.0, random_state=0).fit(FRAME[["count", "colour"]])
    alone = -2 * np.log(2)
    assert f"{model.score(FRAME[['count', 'colour']]) - alone:.3f} nats per training row" in model.summary()
    assert "0.693 nats" in model.summary()


def test_weights_count_as_rows():
    text = JUPAD(**QUICK).fit(FRAME, sample_weight=np.full(100, 25.5)).summary()
    assert "\nrows: 2,550\n" in text


def test_summary_of_one_column():
    lines = JUPAD(**QUICK).fit(FRAME[["count"]]).summary().splitlines()
    assert lines == [
        "JUPAD: joint density of 1 column",
        "rows: 100",
        "fit: one column, by likelihood of its values",
        "",
        "column  kind     values  atoms                     in use",
        "count   integer  1 to 2  2 point_mass + 1 lattice  2",
    ]


def test_every_estimator_has_one(capfd):
    classifier = make_classifier(**QUICK).fit(FRAME[["size"]], FRAME["colour"])
    assert classifier.summary().splitlines()[-1].startswith("colour  categorical  2 categories")
    assert make_imputer(**QUICK).fit(FRAME).summary().startswith("JointImputer, by JUPAD: joint density of 4 columns\n")
    assert capfd.readouterr() == ("", "")


def test_ranges_that_were_never_seen_are_unknown_and_orders_are_told():
    size = pd.Categorical(["S", "M"] * 20, categories=["S", "M"], ordered=True)
    counts = marginals(pd.DataFrame({"size": size, "x": [1.5, 2.5] * 20}))
    variables = tuple(replace(v, observed=(np.nan, np.nan)) for v in counts.schema)
    text = JUPAD(**QUICK).fit_marginals(replace(counts, schema=Schema(variables, counts.schema.container))).summary()
    assert [line.split()[:3] for line in text.splitlines()[-2:]] == [
        ["size", "ordinal", "2"],
        ["x", "continuous", "unknown"],
    ]


def test_summary_needs_a_fit():
    with pytest.raises(NotFittedError):
        JUPAD().summary()


def test_one_category_is_told_as_one():
    assert "1 category " in JUPAD(**QUICK).fit({"a": ["x"] * 9, "b": list(range(9))}).summary()
