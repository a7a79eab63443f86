"""Tables of every kind and container: a fit refuses in a sentence, or its density keeps the laws of probability."""

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.estimators.cases import make_classifier, make_imputer
from tests.fuzz import laws, nasty
from tests.fuzz.case import Case, law, refused

from jointwise import JUPAD

SIZES = (0, 1, 2, 3, 5, 12, 40, 40, 40)
CONTAINERS = ("numpy", "dict", "pandas", "polars", "pyarrow")
# Quick fits; the laws hold of a density however rough it is.
QUICK = {"n_init": 1, "max_iter": 10, "random_state": 0, "n_bins": 16}
WEIGHTS = (None, None, None, "ones", "some zero", "all zero", "huge", "tiny", "astronomic", "negative", "text", "short")
Column = list[Any]


# ---- columns -------------------------------------------------------------------------------------------------


def _times(rng: Random, n: int) -> Column:
    start, zone = dt.datetime(2020, 1, 1, 12), rng.choice((None, dt.UTC, dt.timezone(dt.timedelta(hours=2))))  # noqa: DTZ001
    return [(start + dt.timedelta(seconds=rng.randrange(10**8))).replace(tzinfo=zone) for _ in range(n)]


def _dates(rng: Random, n: int) -> Column:
    ends = (dt.date.min, dt.date.max, dt.date(9999, 12, 30), dt.date(1, 1, 2))
    edge = rng.choice((0.0, 0.0, 0.3, 1.0))
    days = [dt.date(2020, 1, 1) + dt.timedelta(days=rng.randrange(2000)) for _ in range(n)]
    return [rng.choice(ends) if rng.random() < edge else day for day in days]


def _spiky(rng: Random, n: int) -> Column:
    spike, share = rng.choice((0, -1, 999, 0.0, -999.0)), rng.choice((0.3, 0.9))
    other = rng.choice((lambda: rng.randrange(1000, 99999), lambda: rng.gauss(5, 1), lambda: rng.randrange(1, 100)))
    return [spike if rng.random() < share else other() for _ in range(n)]


COLUMNS: dict[str, Callable[[Random, int], Column]] = {
    "normal": lambda rng, n: [rng.gauss(0, 1) for _ in range(n)],
    "scaled": lambda rng, n: [rng.gauss(1, 1) * scale for scale in [10.0 ** rng.randint(-300, 300)] for _ in range(n)],
    "positive": lambda rng, n: [rng.expovariate(1) for _ in range(n)],
    "cents": lambda rng, n: [round(rng.uniform(0, 100), 2) for _ in range(n)],
    "share": lambda rng, n: [rng.choice((0.0, 1.0, rng.random())) for _ in range(n)],
    "heavy": lambda rng, n: [rng.gauss(0, 1) / (rng.random() ** 4 + 1e-12) for _ in range(n)],
    "few integers": lambda rng, n: [rng.randrange(5) for _ in range(n)],
    "whole floats": lambda rng, n: [float(rng.randrange(9)) for _ in range(n)],
    "many integers": lambda rng, n: [rng.randrange(-(10**6), 10**6) for _ in range(n)],
    "huge integers": lambda rng, n: [rng.choice((2**53, 2**62, 2**63 - 1, -(2**63), 0)) + 0 for _ in range(n)],
    "any numbers": lambda rng, n: [nasty.number(rng) for _ in range(n)],
    "spiky": _spiky,
    "constant": lambda rng, n: [rng.choice((0, 1.5, "a", True, 1e300, -(2**60)))] * n,
    "identifier": lambda rng, n: list(range(1, n + 1)),
    "names": lambda rng, n: [f"person {i}" for i in range(n)],
    "words": lambda rng, n: [rng.choice(("ash", "birch", "cedar")) for _ in range(n)],
    "any text": lambda rng, n: [rng.choice(nasty.TEXTS) for _ in range(n)],
    "booleans": lambda rng, n: [rng.random() < 0.5 for _ in range(n)],
    "dates": _dates,
    "times": _times,
    "decimals": lambda rng, n: [Decimal(rng.randrange(10**4)) / 100 for _ in range(n)],
    "gaps": lambda rng, n: [None] * n,
    "anything": lambda rng, n: [nasty.value(rng) for _ in range(n)],
}
STRATEGIES = (
    st.floats(),
    st.floats(width=32, allow_nan=False),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(),
    st.text(max_size=4),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.sampled_from([0.0, -0.0, 1.0]),
    st.one_of(st.none(), st.integers(0, 3)),
)


def column(case: Case, n: int) -> tuple[str, Column]:
    """Return what a column is, and its cells, some of them missing."""
    rng = case.rng
    if rng.random() < 0.3:
        strategy = rng.choice(STRATEGIES)
        kind, cells = str(strategy)[:40], list(case.drawn(st.lists(strategy, min_size=n, max_size=n)))
    else:
        kind = rng.choice(list(COLUMNS))
        cells = COLUMNS[kind](rng, n)
    if rng.random() < 0.3:
        share = rng.choice((0.1, 0.5, 0.9))
        cells = [None if rng.random() < share else cell for cell in cells]
    return kind, cells


def columns(case: Case) -> dict[str, Column]:
    """Return a table as lists by name."""
    rng, n = case.rng, case.rng.choice(SIZES)
    found: dict[str, Column] = {}
    for i in range(rng.choice((1, 2, 2, 3, 4))):
        name = f"{'abcd'[i]}" if rng.random() < 0.8 else rng.choice(nasty.TEXTS)
        kind, found[name] = column(case, n)
        case.note(f"{name!a:.40} {kind}: {str(found[name])[:300]!a}")
    return found


# ---- containers ----------------------------------------------------------------------------------------------


def contained(case: Case, data: dict[str, Column]) -> Any:
    """Return the table in some container; None where its library will not have it."""
    container = case.rng.choice(CONTAINERS)
    case.note(f"container {container}")
    try:
        return _MAKERS[container](case.rng, data)
    except Exception:  # noqa: BLE001  # what a library refuses never reaches us
        return None


def _numpy(rng: Random, data: dict[str, Column]) -> Any:
    rows = [list(row) for row in zip(*data.values(), strict=True)]
    if rng.random() < 0.5:
        return np.array(rows, dtype=float).reshape(len(rows), len(data))
    out = np.empty((len(rows), len(data)), dtype=object)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def _dict(rng: Random, data: dict[str, Column]) -> Any:
    if rng.random() < 0.5:
        return data
    return {name: laws.objects(cells) if rng.random() < 0.5 else np.array(cells) for name, cells in data.items()}


def _pandas(rng: Random, data: dict[str, Column]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(data)
    if rng.random() < 0.2:
        frame = frame.convert_dtypes()
    if rng.random() < 0.2:
        frame = frame.astype({name: "category" for name in frame.columns if rng.random() < 0.5})
    if rng.random() < 0.1:
        frame.columns = ["same"] * frame.shape[1]
    if rng.random() < 0.1:
        frame.columns = pd.Index(range(frame.shape[1]))
    if rng.random() < 0.1:
        frame.index = pd.Index(rng.choice(((0,), ("i",)))[0:1] * len(frame))
    return frame


def _polars(rng: Random, data: dict[str, Column]) -> Any:
    import polars as pl

    frame = pl.DataFrame(data, strict=rng.random() < 0.5)
    return frame.lazy() if rng.random() < 0.15 else frame


def _pyarrow(rng: Random, data: dict[str, Column]) -> Any:
    import pyarrow as pa

    table = pa.table(data)
    if rng.random() < 0.2:
        names = [name for name in table.column_names if pa.types.is_string(table[name].type)]
        for name in names:
            at = table.column_names.index(name)
            table = table.set_column(at, name, table[name].dictionary_encode())
    return table


_MAKERS = {"numpy": _numpy, "dict": _dict, "pandas": _pandas, "polars": _polars, "pyarrow": _pyarrow}


def weights(rng: Random, n: int) -> Any:
    """Return how often each row counts."""
    kind = rng.choice(WEIGHTS)
    if kind is None:
        return None
    made = {
        "ones": [1.0] * n,
        "some zero": [float(rng.random() < 0.6) for _ in range(n)],
        "all zero": [0.0] * n,
        "huge": [10.0 ** rng.uniform(0, 9) for _ in range(n)],
        "tiny": [10.0 ** rng.uniform(-320, -3) for _ in range(n)],
        "astronomic": [rng.choice((1e10, 1e200, 1e308, 1.0)) for _ in range(n)],
        "negative": [rng.choice((-1.0, 1.0, np.nan, np.inf)) for _ in range(n)],
        "text": ["a"] * n,
        "short": [1.0] * (n // 2),
    }
    return np.array(made[kind]) if rng.random() < 0.8 else made[kind]


# ---- the case ------------------------------------------------------------------------------------------------


def run(case: Case) -> None:
    """Fit a table, and hold the density to the laws."""
    data = columns(case)
    frame = contained(case, data)
    if frame is None:
        return
    n = len(next(iter(data.values())))
    options = _options(case.rng, list(data))
    case.note(f"options {options!a:.200}")
    if case.rng.random() < 0.15:
        _classify(case, frame, n)
        return
    if case.rng.random() < 0.15:
        _impute(frame)
        return
    given = weights(case.rng, n)
    case.note(f"weights {str(given)[:100]}")
    gone, model = refused(JUPAD(**QUICK, **options).fit, frame, sample_weight=given)
    if not gone:
        case.note(f"fitted: {model.density_.schema!a:.600}")
        refused(model.summary)
        laws.check(model.density_, case.rng, case.folder)


def _options(rng: Random, names: list[str]) -> dict[str, Any]:
    options: dict[str, Any] = {"n_components": rng.choice((1, 2, 3))}
    if rng.random() < 0.3:
        options["method"] = "pairs"
    if rng.random() < 0.3:
        kinds = ("continuous", "integer", "categorical", "ordinal")
        options["kinds"] = {name: rng.choice(kinds) for name in names if rng.random() < 0.5}
    return options


def _classify(case: Case, frame: Any, n: int) -> None:
    y = [case.rng.choice(("u", "v")) for _ in range(n)]
    gone, model = refused(make_classifier(2, **QUICK).fit, frame, y)
    if gone:
        return
    gone, p = refused(model.predict_proba, frame)
    law(gone or np.allclose(p.sum(axis=1), 1), "probabilities of classes do not sum to one")
    refused(model.predict, frame)


def _impute(frame: Any) -> None:
    gone, model = refused(make_imputer(2, **QUICK).fit, frame)
    if not gone:
        refused(model.transform, frame)
