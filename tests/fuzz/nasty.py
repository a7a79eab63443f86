"""Values that programs stumble over, and changes of bytes and of trees."""

import copy
import json
import math
import re
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

from jointwise.families import FAMILIES

INTEGERS = (0, 1, -1, 2, 7, 255, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**20, 10**30)
FLOATS = (
    0.0, -0.0, 0.5, 1.0, -1.0, math.nan, math.inf, -math.inf, 1e308, -1e308, 1.7e308, 5e-324, 1e-300, 1e-12, 1e16, 1e20,
)  # fmt: skip
TEXTS = (
    "", " ", "\n", "\r\n", "\0", "\ud800", "\udcff", "é", "e\u0301", "\u202e", "\ufeff", "NaN", "null", "None", "inf",
    "-inf", "1e999", "0x10", "1_000", "true", "=1+1", "'", '"', '""', ",", ";", "\t", "|", "..", "in", "P(", "P()", "{",
    "}", "\\", "%s", "{0}", "a" * 3_000, "\U0001f600", "0001-01-01", "9999-12-31", "10000-01-01", "2024-02-30",
    "1970-01-01T00:00:00+99:99", "-", "--", "$array",
)  # fmt: skip
# JSON can hold more digits than a float, and more text than a name should have.
HUGE = (10**400, "n" * 300_000)


def number(rng: Random) -> Any:
    """Return a number, ordinary or not."""
    pick = rng.random()
    if pick < 0.4:
        return rng.choice(FLOATS)
    if pick < 0.6:
        return rng.choice(INTEGERS)
    return rng.choice((1, -1)) * 10.0 ** rng.uniform(-12, 18) if pick < 0.8 else rng.gauss(0, 10)


def value(rng: Random) -> Any:
    """Return a leaf of a tree: a number, text, or something that is none."""
    pick = rng.random()
    if pick < 0.45:
        return number(rng)
    if pick < 0.75:
        return rng.choice(TEXTS)
    if pick < 0.8:
        return rng.choice(HUGE)
    return copy.deepcopy(rng.choice((None, True, False, [], {}, [[]], [None], {"": ""}, [1, [2]], [0.0] * 50)))


# ---- bytes ---------------------------------------------------------------------------------------------------


def changed_bytes(rng: Random, data: bytes) -> bytes:
    """Return the bytes after one to four changes."""
    for _ in range(rng.randint(1, 4)):
        data = rng.choice((_flip, _cut, _remove, _insert, _repeat, _overwrite, _swap, _renumber))(rng, data)
    return data


def _places(rng: Random, data: bytes, most: int = 64) -> tuple[int, int]:
    start = rng.randrange(len(data) + 1)
    return start, min(len(data), start + rng.randint(1, most))


def _flip(rng: Random, data: bytes) -> bytes:
    if not data:
        return data
    out = bytearray(data)
    out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _cut(rng: Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _remove(rng: Random, data: bytes) -> bytes:
    start, end = _places(rng, data)
    return data[:start] + data[end:]


def _insert(rng: Random, data: bytes) -> bytes:
    start, _ = _places(rng, data)
    piece = rng.choice(
        (
            b"\0",
            b"\xff",
            b"\n",
            b'"',
            b",",
            b"\xed\xa0\x80",
            b"1e999",
            b"\r",
            b"[" * 300,
            b'{"a":' * 50,
            b"-",
            b"\x1f\x8b",
        )
    )
    return data[:start] + piece + data[start:]


def _repeat(rng: Random, data: bytes) -> bytes:
    start, end = _places(rng, data, 2_000)
    return data[:end] + data[start:end] * rng.randint(1, 5) + data[end:]


def _overwrite(rng: Random, data: bytes) -> bytes:
    start, end = _places(rng, data, 16)
    return data[:start] + rng.randbytes(end - start) + data[end:]


def _swap(rng: Random, data: bytes) -> bytes:
    a, b, c = sorted(rng.randrange(len(data) + 1) for _ in range(3))
    return data[:a] + data[b:c] + data[a:b] + data[c:]


def _renumber(rng: Random, data: bytes) -> bytes:
    """Put another value in the place of some digits."""
    found = list(re.finditer(rb"-?\d+(\.\d+)?", data))
    if not found:
        return data
    match = rng.choice(found)
    new = str(rng.choice((*INTEGERS, *FLOATS, *TEXTS))).encode(errors="surrogatepass")
    return data[: match.start()] + new + data[match.end() :]


# ---- trees of dicts and lists --------------------------------------------------------------------------------


def places(tree: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths to every value of a tree, inner ones included."""
    yield path
    children = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def at(tree: Any, path: tuple[Any, ...]) -> Any:
    """Return the value at a path."""
    for key in path:
        tree = tree[key]
    return tree


def changed_tree(rng: Random, tree: Any) -> Any:
    """Return a copy of a tree after one to three changes of values, keys, order or depth."""
    tree = copy.deepcopy(tree)
    for _ in range(rng.randint(1, 3)):
        paths = list(places(tree))
        path = rng.choice(paths)
        if not path:
            continue
        holder, key = at(tree, path[:-1]), path[-1]
        pick = rng.random()
        if pick < 0.5:
            holder[key] = _changed_value(rng, holder[key])
        elif pick < 0.6:
            del holder[key]
        elif pick < 0.75:
            holder[key] = copy.deepcopy(at(tree, rng.choice(paths)))
        elif pick < 0.85:
            holder[key] = [holder[key]] * rng.choice((1, 2, 40))
        elif isinstance(holder, dict):
            holder[rng.choice((*TEXTS, *holder))] = holder.pop(key)
        else:
            rng.shuffle(holder)
    return tree


def _changed_value(rng: Random, old: Any) -> Any:
    """Return another value, mostly of the same type, so that it passes the first check and meets the next."""
    pick = rng.random()
    if isinstance(old, np.ndarray) and pick < 0.8:
        new = np.array(old, dtype=float)
        new[tuple(rng.randrange(side) for side in new.shape)] = float(rng.choice(FLOATS))
        return new
    if isinstance(old, bool) and pick < 0.5:
        return not old
    if isinstance(old, (int, float)) and pick < 0.8:
        return number(rng)
    if isinstance(old, str) and pick < 0.6:
        known = (*FAMILIES, "continuous", "integer", "categorical", "float64", "int64", "bool", "string", "date",
                 "datetime[ns]", "datetime[us,Europe/Paris]", "datetime[s,Mars]", "enum", "numpy", "pandas", "polars",
                 "pyarrow", "dict", "binned", "discrete")  # fmt: skip
        return rng.choice(known)
    return value(rng)


def as_json(tree: Any) -> bytes:
    """Return the text of a tree as Python's own `json` writes it, NaN and lone surrogates included."""
    return json.dumps(tree, separators=(",", ":")).encode()
