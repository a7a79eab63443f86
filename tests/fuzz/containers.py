"""Files of the package taken apart and put together again, with a right checksum."""

import hashlib
import json
import struct
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from tests.fuzz import nasty

from jointwise.families import FAMILIES

PREFIX = struct.Struct("<10sIQ")
DIGEST = 32
# Families made of others.
DERIVED = ("lattice", "truncated", "warped")


@dataclass(frozen=True)
class Parts:
    """Magic and version, the header as a tree, and the bytes of its arrays."""

    magic: bytes
    version: int
    header: Any
    payload: bytes


def opened(data: bytes) -> Parts:
    """Take a file apart."""
    magic, version, length = PREFIX.unpack_from(data)
    start = PREFIX.size + length
    return Parts(magic, version, json.loads(data[PREFIX.size : start]), data[start:-DIGEST])


def sealed(body: bytes) -> bytes:
    """Return bytes with their checksum."""
    return body + hashlib.sha256(body).digest()


def closed(parts: Parts, text: bytes | None = None) -> bytes:
    """Put a file together; ``text`` stands for the header."""
    text = nasty.as_json(parts.header) if text is None else text
    return sealed(PREFIX.pack(parts.magic, parts.version, len(text)) + text + parts.payload)


def changed_file(rng: Random, data: bytes) -> tuple[str, bytes]:
    """Return how a file was changed, and what became of it."""
    ways = (_raw, _resealed, _text, _tree, _tree, _tree, _numbers, _numbers, _numbers, _shapes, _nested, _family, _many)
    way = rng.choice(ways)
    return way.__name__.strip("_"), way(rng, data)


def _raw(rng: Random, data: bytes) -> bytes:
    return nasty.changed_bytes(rng, data)


def _resealed(rng: Random, data: bytes) -> bytes:
    return sealed(nasty.changed_bytes(rng, data[:-DIGEST]))


def _text(rng: Random, data: bytes) -> bytes:
    parts = opened(data)
    return closed(parts, nasty.changed_bytes(rng, nasty.as_json(parts.header)))


def _tree(rng: Random, data: bytes) -> bytes:
    parts = opened(data)
    return closed(Parts(parts.magic, parts.version, nasty.changed_tree(rng, parts.header), parts.payload))


def _numbers(rng: Random, data: bytes) -> bytes:
    """Change numbers of the arrays: of one array all, or some anywhere."""
    parts = opened(data)
    numbers = np.frombuffer(parts.payload, "<f8").copy()
    if not len(numbers):
        return _tree(rng, data)
    if rng.random() < 0.4:
        sizes = [int(np.prod(shape)) for shape in parts.header["arrays"]]
        which = rng.randrange(len(sizes))
        start = sum(sizes[:which])
        numbers[start : start + sizes[which]] = float(nasty.number(rng))
    else:
        for _ in range(rng.randint(1, 3)):
            numbers[rng.randrange(len(numbers))] = float(nasty.number(rng))
    return closed(Parts(parts.magic, parts.version, parts.header, numbers.tobytes()))


def _shapes(rng: Random, data: bytes) -> bytes:
    """Give an array another shape; mostly the payload follows."""
    parts = opened(data)
    header = nasty.changed_tree(rng, {"arrays": parts.header["arrays"]}) | {"content": parts.header["content"]}
    payload = parts.payload
    if rng.random() < 0.7:
        size = 8 * rng.choice((1, 2, 3))
        payload = payload + bytes(size) if rng.random() < 0.5 else payload[:-size]
    return closed(Parts(parts.magic, parts.version, header, payload))


def _nested(rng: Random, data: bytes) -> bytes:
    """Put a family into others, many times."""
    parts = opened(data)
    families = _families(parts.header)
    if not families:
        return _tree(rng, data)
    holder = rng.choice(families)
    kinds = rng.choice((("truncated",), ("truncated",), ("lattice",), ("truncated", "lattice")))
    low, high = rng.choice(((-1.0, 1.0), (-1e300, 1e300), (-1e300, 1e300), (0.0, 1e6), (1e-9, 1e-8)))
    for _ in range(rng.choice((1, 2, 3, 8, 15, 30, 200))):
        kind = rng.choice(kinds)
        inner = dict(holder)
        holder.clear()
        holder.update({"family": kind, "base": inner} | ({"low": low, "high": high} if kind == "truncated" else {}))
    return closed(parts)


def _family(rng: Random, data: bytes) -> bytes:
    """Put one atom of any family, with any numbers, in the place of a batch; a single atom keeps it valid."""
    parts = opened(data)
    families = _families(parts.header)
    if not families:
        return _tree(rng, data)
    named = {name: family.parameter_names() for name, family in FAMILIES.items() if name not in DERIVED}
    holder = rng.choice(families)
    size = _atoms(holder, parts.header["arrays"])
    # arrays must be named in their turn, so those of the batch stay where they are where names allow it
    before = [each for each in holder.values() if isinstance(each, dict) and "$array" in each]
    name = rng.choice([kind for kind, keys in named.items() if len(keys) >= len(before)] or list(named))
    holder.clear()
    keys = list(named[name])
    holder["family"] = name
    for key in keys:
        holder[key] = before.pop(0) if before else [float(abs(rng.gauss(0, 1))) for _ in range(size)]
    return _numbers(rng, closed(parts)) if rng.random() < 0.7 else closed(parts)


def _many(rng: Random, data: bytes) -> bytes:
    """Name very many arrays, categories or variables."""
    parts = opened(data)
    n = rng.choice((1_000, 1_000, 100_000, 100_000, 5_000_000))
    if rng.random() < 0.5:
        parts.header["arrays"] = [[]] * n
        return closed(parts)
    path = rng.choice([path for path in nasty.places(parts.header) if path])
    nasty.at(parts.header, path[:-1])[path[-1]] = rng.choice(([], {}, 0, "", None, [0])) if n < 2_000 else [[]] * n
    return closed(parts)


def _families(tree: Any) -> list[dict[str, Any]]:
    found = [nasty.at(tree, path) for path in nasty.places(tree)]
    return [each for each in found if isinstance(each, dict) and "family" in each]


def _atoms(family: dict[str, Any], shapes: list[list[int]]) -> int:
    sizes = [shapes[each["$array"]] for each in family.values() if isinstance(each, dict) and "$array" in each]
    return max((int(np.prod(size)) for size in sizes), default=1)
