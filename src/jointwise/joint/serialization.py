r"""One file per density: a checked header, JSON, plain arrays. Nothing in it is ever executed.

Layout, all numbers little-endian::

    bytes 0-9     b"JOINTWISE\n", or what other contents begin with
    uint32        format version
    uint64        length of the JSON text in bytes
    JSON          {"arrays": [shape, shape, ...], "content": {...}}; {"$array": i} stands for the i-th array, and
                  each array is named once, in its turn
    float64       the arrays one after the other, in C order
    32 bytes      SHA-256 of all that comes before

A file is read only if its length is what the header promises and its JSON text has a bounded number of lists and
objects, so a few hostile bytes cannot ask for much memory; and it is written beside its place and moved there in one
step, so that a reader never meets half a file.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, prod
from pathlib import Path
from typing import IO, Any, NoReturn, TypeVar

import numpy as np

from jointwise._checks import MALFORMED, cause, listed, shown
from jointwise._files import replacing
from jointwise._typing import FloatArray
from jointwise.exceptions import FileFormatError, InputError

MAGIC = b"JOINTWISE\n"
# Far above any density of use (100 million numbers), far below what would hurt.
MAX_BYTES = 1 << 30
# The JSON text holds names and categories only; parsed, those take up to fifteen times their length.
MAX_JSON = 1 << 24
# A list or object takes up to two hundred bytes, and three of text; a variable with its atoms has about fifty.
MAX_BRANCHES = 1 << 19
MAX_DEPTH = 64
_MARKS = bytes.maketrans(b"{}", b"[]")
# Read at a time from what does not tell its length.
CHUNK = 1 << 20
_PREFIX = struct.Struct("<10sIQ")
_DIGEST = 32

T = TypeVar("T")


@dataclass(frozen=True)
class Form:
    """What a file holds.

    Parameters
    ----------
    name : str
        For messages.
    magic : bytes
        The ten bytes it begins with.
    version : int
        The version that is written.
    older : mapping of int to callable
        Versions that are read too; each function turns their content into that of the present version.
    """

    name: str
    magic: bytes
    version: int
    older: Mapping[int, Callable[[Any], Any]] = field(default_factory=dict)


# Part of a density's content that may be there or not: what else it takes to tell a class.
CLASSES = "classes"


def _from_version_1(content: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a density's file of version 1, which held one product mixture, as one of version 2."""
    mixture = {name: content.pop(name) for name in ("weights", "coefficients", "dictionaries")}
    content |= {"weights": np.ones(1), "experts": [{"kind": "product", **mixture}]}
    second = (content.get(CLASSES) or {}).get("second")
    if second is not None:
        second["density"] = _from_version_1(second["density"])
    return content


DENSITY = Form("density", MAGIC, 2, {1: _from_version_1})


def write(path: Path, content: dict[str, Any], form: Form = DENSITY) -> None:
    """Write ``content``, a tree of dicts, lists, plain values and float arrays, to ``path`` in one step."""
    header, data = _encoded(content)
    if branches(header)[0] > MAX_BRANCHES:
        raise InputError(f"The {form.name} has too many variables and atoms to be written to a file.")
    body = b"".join([_PREFIX.pack(form.magic, form.version, len(header)), header, *data])
    if len(header) > MAX_JSON or len(body) + _DIGEST > MAX_BYTES:
        raise InputError(
            f"The {form.name} takes {len(body):,} bytes with {len(header):,} for names and categories; a file may take "
            f"at most {MAX_BYTES:,} with {MAX_JSON:,}."
        )
    with replacing(path) as file:
        file.write(body)
        file.write(hashlib.sha256(body).digest())


def digest(content: dict[str, Any]) -> str:
    """Return the SHA-256 of such a tree, which tells it from others.

    >>> digest({"a": np.zeros(2)}) == digest({"a": np.zeros(3)})
    False
    """
    header, data = _encoded(content)
    return hashlib.sha256(b"".join([header, *data])).hexdigest()


def _encoded(content: dict[str, Any]) -> tuple[bytes, list[bytes]]:
    """Return the JSON text, and the bytes of each array."""
    arrays: list[FloatArray] = []
    plain = _pull_arrays(content, arrays)
    header = json.dumps({"arrays": [a.shape for a in arrays], "content": plain}, allow_nan=False).encode()
    return header, [a.astype("<f8").tobytes() for a in arrays]


def read(path: Path, build: Callable[[dict[str, Any]], T], form: Form = DENSITY) -> T:
    """Read the tree written to ``path`` and hand it to ``build``; whatever is wrong with it is one clear error."""
    body = _verified_body(path, form)
    try:
        start = _PREFIX.size + _json_length(body)
        header = _parsed(bytes(body[_PREFIX.size : start]))
        if not isinstance(header, dict) or set(header) != {"arrays", "content"}:
            raise FileFormatError("its JSON text must hold arrays and content")
        arrays = enumerate(_read_arrays(header["arrays"], body[start:]))
        content = _put_arrays(header["content"], arrays)
        if next(arrays, None) is not None:
            raise FileFormatError("it has an array without a place")
        version = _PREFIX.unpack_from(body)[1]
        return build(content if version == form.version else form.older[version](content))
    except MALFORMED as error:
        raise FileFormatError(f"{path} is not a valid jointwise {form.name}: {cause(error)}.") from error


def without_classes(content: Any) -> Any:
    """Return the content of a density's file without what tells its classes."""
    return {key: part for key, part in content.items() if key != CLASSES} if isinstance(content, dict) else content


def _verified_body(path: Path, form: Form) -> memoryview:
    """Return the file without its digest, its magic, version, size and digest checked, in that order."""
    with path.open("rb") as file:
        data = file.read(_PREFIX.size)
        if len(data) < _PREFIX.size or not data.startswith(form.magic):
            raise FileFormatError(f"{path} is not a jointwise {form.name}: it does not begin as one.")
        version = _PREFIX.unpack(data)[1]
        known = sorted({form.version, *form.older})
        if version not in known:
            raise FileFormatError(
                f"{path} has format version {version}; this jointwise reads version{'s' * (len(known) > 1)} "
                f"{listed(known)}. Read it with the jointwise that wrote it, or a newer one."
            )
        rest = _rest(file, MAX_BYTES - len(data))
        if rest is None:
            raise FileFormatError(f"{path} is too long: a jointwise {form.name} has at most {MAX_BYTES:,} bytes.")
        data += rest
    if len(data) < _PREFIX.size + _DIGEST:
        raise FileFormatError(f"{path} is damaged or cut short. Write it again.")
    body = memoryview(data)[:-_DIGEST]
    if hashlib.sha256(body).digest() != data[-_DIGEST:]:
        raise FileFormatError(f"{path} is damaged or cut short: its checksum does not fit. Write it again.")
    return body


def _rest(file: IO[bytes], most: int) -> bytes | None:
    """Return all that follows, None where that is more than it may be; a pipe is read once, as far as that."""
    status = os.fstat(file.fileno())
    if stat.S_ISREG(status.st_mode):  # tells its length, so that nothing is read in vain
        return file.read() if status.st_size - file.tell() <= most else None
    parts = []
    while most >= 0 and (part := file.read(CHUNK)):
        parts.append(part)
        most -= len(part)
    return b"".join(parts) if most >= 0 else None


def _json_length(body: memoryview) -> int:
    length: int = _PREFIX.unpack_from(body)[2]
    if length > min(MAX_JSON, len(body) - _PREFIX.size):
        raise FileFormatError(f"its JSON text cannot have {length:,} bytes")
    return length


def _parsed(text: bytes) -> Any:
    """Parse JSON whose lists and objects are counted before any is made."""
    n_branches, depth = branches(text)
    if n_branches > MAX_BRANCHES or depth > MAX_DEPTH:
        raise FileFormatError(
            f"its JSON text has {n_branches:,} lists and objects, {depth} deep; it may have {MAX_BRANCHES:,}, "
            f"{MAX_DEPTH} deep"
        )
    return json.loads(text.decode(), parse_constant=_refuse_constant)


def branches(text: bytes) -> tuple[int, int]:
    """Count the lists and objects of a JSON text, and how deep they lie in each other, without parsing it.

    >>> branches(b'{"a": [[], "[["]}')
    (3, 3)
    """
    # without escapes each quote begins or ends a string; what is no JSON ends the parser where this goes wrong
    marks = np.frombuffer(text.replace(rb"\\", b"").replace(rb"\"", b"").translate(_MARKS), np.uint8)
    outside = ~np.logical_xor.accumulate(marks == ord('"'))
    marks = marks[outside & ((marks == ord("[")) | (marks == ord("]")))]
    opened = marks == ord("[")
    depth = np.cumsum(2 * opened.astype(np.int8) - 1, dtype=np.int32)
    return int(opened.sum()), int(depth.max(initial=0))


def _refuse_constant(name: str) -> NoReturn:
    raise FileFormatError(f"its JSON text has {name}, which is no number of JSON")


def _pull_arrays(node: Any, arrays: list[FloatArray]) -> Any:
    if isinstance(node, np.ndarray) or (isinstance(node, float) and not isfinite(node)):  # JSON has no infinity
        arrays.append(np.asarray(node, dtype=np.float64))
        return {"$array": len(arrays) - 1}
    if isinstance(node, dict):
        return {key: _pull_arrays(value, arrays) for key, value in node.items()}
    if isinstance(node, list | tuple):
        return node if _is_flat(node) else [_pull_arrays(value, arrays) for value in node]
    return node


def _is_flat(values: Sequence[Any]) -> bool:
    """Return whether values are all finite floats, which JSON takes as they are: a hundred times as fast as one by one.

    >>> _is_flat([0.5, 2.0]), _is_flat([0.5, float("inf")]), _is_flat([1, 2.0])
    (True, False, False)
    """
    return set(map(type, values)) == {float} and all(map(isfinite, values))


def _put_arrays(node: Any, arrays: Iterator[tuple[int, FloatArray]]) -> Any:
    """Put each array where it is named: once and in turn, so that a short text cannot multiply a long array."""
    if isinstance(node, dict):
        if set(node) == {"$array"}:
            position, array = next(arrays, (None, None))
            if array is None or node["$array"] != position:
                raise FileFormatError(f"it names array {shown(node['$array'])} out of turn")
            return array
        for key, value in node.items():  # in place, so that there is one tree and not two
            node[key] = _put_arrays(value, arrays)
    elif isinstance(node, list):
        for place, value in enumerate(node):
            node[place] = _put_arrays(value, arrays)
    return node


def _read_arrays(shapes: Any, payload: memoryview) -> list[FloatArray]:
    if not isinstance(shapes, list) or 8 * len(shapes) > len(payload):  # an array has at least one number
        raise FileFormatError("its arrays are longer than the file")
    arrays, at = [], 0
    for shape in shapes:
        if len(shape) > 2 or not all(type(side) is int and side > 0 for side in shape):
            raise FileFormatError(f"an array cannot have the shape {shown(shape)}")
        size = 8 * prod(shape)
        if at + size > len(payload):
            raise FileFormatError("its arrays are longer than the file")
        arrays.append(np.frombuffer(payload, "<f8", prod(shape), at).astype(np.float64).reshape(shape))
        at += size
    if at != len(payload):
        raise FileFormatError("its arrays are shorter than the file")
    return arrays
