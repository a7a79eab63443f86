"""One table for every cluster, and gates that hold a worker at a known place until it has been killed."""

from __future__ import annotations

import datetime as dt
import importlib
import os
import signal
import threading
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from tests.engines import tree_cases

from jointwise import JUPAD, GaussianBlocks, JointEstimator, Profile
from jointwise.engines.blocks import BlockComponents, BlockLayout
from jointwise.fitting import order, starts
from jointwise.rows.coded import CodedRows

FIRST_DAY = dt.date(2024, 1, 1)
WAIT = 60.0  # seconds after which a gate opens by itself, so that no test can hang


def mixed_frame(n=600, seed=0):
    """Return floats, integers, text, booleans and dates as pandas keeps them, some floats and texts missing."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 3, n)
    number = rng.normal(group, 0.5)
    number[rng.random(n) < 0.1] = np.nan
    text = np.array(["a", "b", "c"], dtype=object)[group]
    text[rng.random(n) < 0.1] = None
    return pd.DataFrame(
        {
            "number": number,
            "count": rng.poisson(3 + group),
            "text": text,
            "flag": rng.random(n) < 0.2 + 0.3 * group,
            "day": [FIRST_DAY + dt.timedelta(days=int(d)) for d in rng.integers(0, 90, n)],
        }
    )


def cut(frame, places):
    """Return the frame in parts, cut at these places; equal places leave parts without rows."""
    bounds = [0, *sorted(places), len(frame)]
    return [frame.iloc[a:b] for a, b in pairwise(bounds)]


def model(data, **settings):
    return JUPAD(**({"n_components": 3, "random_state": 0} | settings)).fit(data)


def stack(data):
    """Return a stack of one small expert of each kind."""
    experts = [("products", JUPAD(3)), ("blocks", GaussianBlocks("joint", n_components=2, nu=5.0))]
    return JointEstimator(experts, random_state=0, max_iter=30, tol=1e-3).fit(data)


def assert_weighs(make, frame, *, where):
    """A column of weights gives the fit of the frame with these weights, which are halves: their sums are exact."""
    weights = np.random.default_rng(1).integers(0, 4, len(frame)) / 2
    settings = {"n_components": 3, "random_state": 0, "max_iter": 30, "tol": 1e-3}
    expected = JUPAD(**settings).fit(frame, sample_weight=weights)
    found = JUPAD(**settings).fit(make(frame.assign(w=weights)), sample_weight="w")
    assert found.feature_names_in_.tolist() == list(frame.columns)
    if where == "here":
        assert_same_model(found, expected)
    np.testing.assert_allclose(found.score_samples(frame), expected.score_samples(frame), atol=1e-6)


def in_parts(monkeypatch):
    """Fit even a small table in the cluster, instead of bringing its rows here; only starts take a sample."""
    monkeypatch.setattr(order, "CANONICAL_ROWS", 10)
    monkeypatch.setattr(starts, "SHORT_ROWS", 300)


def arrays(fitted):
    mixture = fitted.density_.mixture
    return (mixture.weights, *mixture.coefficients)


def assert_same_model(a, b):
    assert all(np.array_equal(x, y) for x, y in zip(arrays(a), arrays(b), strict=True))
    assert a.density_.schema.variables == b.density_.schema.variables


def assert_same_table(source, frame):
    """Profile, schema up to the container, pair counts, sums of trees and of a block are those of the frame here."""
    profile, expected = source.profile(), Profile.of(frame)
    assert profile.columns == expected.columns
    assert profile.n_rows == expected.n_rows
    schema = profile.schema()
    assert schema.variables == expected.schema().variables
    axes = profile.axes(schema, 16)
    with source.coded(schema, axes, None) as rows:
        assert len(rows) == len(frame)
        pairs = rows.pairs()
        here = CodedRows.of(frame, schema, axes)
        assert pairs == here.pairs()
        rng = np.random.default_rng(0)
        trees = tree_cases.make_components(rng, tree_cases.make_forest(rng, rows.n_bins, 2))
        a, b = rows.tree_engine(), here.tree_engine()
        tree_cases.assert_close(a.edge_sums(trees), b.edge_sums(trees))
        asked = tree_cases.all_pairs(len(axes))
        tree_cases.assert_close(a.pair_sums(trees, asked), b.pair_sums(trees, asked))
    numbers = [variable.name for variable in schema if variable.categories is None]
    fine = profile.axes(schema, 16, fine=numbers)
    with source.coded(schema, fine, None) as rows:
        assert rows.regrouped(axes).pairs() == pairs
        layout, components = _block(rows, [schema.index(name) for name in numbers])
        found = rows.block_engine(layout).sums(components)
    plain = CodedRows.of(frame, schema, fine).block_engine(layout).sums(components)
    np.testing.assert_allclose(found.seconds, plain.seconds, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found.log_likelihood, plain.log_likelihood, rtol=1e-10)
    for a, b in zip(found.counts + found.spikes, plain.counts + plain.spikes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


def _block(rows, columns):
    """Return a layout whose block has these columns, standardised, and two components."""
    rng = np.random.default_rng(0)
    values = [(w - w.mean()) / w.std() for w in (rows.axes[n].centres for n in columns)]
    layout = BlockLayout(rows.n_bins, columns, values, [n for n in range(len(rows.axes)) if n not in columns])
    d = len(columns)
    return layout, BlockComponents(
        np.log([0.4, 0.6]), rng.normal(size=(2, d)), np.stack([np.eye(d) + 0.2] * 2),
        [np.log(rng.dirichlet(np.ones(bins), 2).T) for bins in layout.table_bins],
        [np.log(rng.dirichlet(np.ones(1 + n), 2).T) for n in layout.n_spikes],
    )  # fmt: skip


def hold(module, name, folder, passes=0):
    """In a worker: after some calls, the function of that name writes its process to a file and waits for the kill."""
    owner = importlib.import_module(module)
    setattr(owner, name, partial(_held, getattr(owner, name), Path(folder), [passes]))


def _held(function, folder, left, *args, **kwargs):
    left[0] -= 1
    if left[0] < 0 and not (folder / "killed").exists():
        (folder / f"at-{os.getpid()}").touch()
        deadline = time.monotonic() + WAIT
        while not (folder / "killed").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
    return function(*args, **kwargs)


class Killer(threading.Thread):
    """Kill the first process that reaches a gate, then open the gate for the others."""

    def __init__(self, folder):
        super().__init__(daemon=True)
        self.folder = Path(folder)
        self.killed = None
        self.start()

    def run(self):
        deadline = time.monotonic() + WAIT
        while self.killed is None and time.monotonic() < deadline:
            for file in self.folder.glob("at-*"):
                self.killed = int(file.name.removeprefix("at-"))
                os.kill(self.killed, signal.SIGKILL)
                break
            time.sleep(0.01)
        (self.folder / "killed").touch()
