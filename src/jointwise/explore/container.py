"""Arrays and plain values in one string: what a page carries its model in.

The string is base64 of gzip of: the length of a JSON text as four bytes, the text, then the bytes of all arrays. In
the text an array is ``{"$": [type, start, *shape]}``. The bytes of an array are sorted by their place in a number
(first all lowest bytes, last all highest ones), because the highest bytes of probabilities are alike: gzip sees that.
"""

from __future__ import annotations

import base64
import gzip
import json
import struct
from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np

from jointwise._typing import AnyArray


def packed(content: Mapping[str, Any]) -> str:
    """Return plain values and arrays as one string.

    Parameters
    ----------
    content : mapping
        Values that JSON holds, and arrays of float64, float32 or integers (written as int32), at any depth.

    Examples
    --------
    >>> text = packed({"name": "a", "values": np.array([[0.5, 0.25]])})
    >>> unpacked(text)
    {'name': 'a', 'values': array([[0.5 , 0.25]])}
    """
    arrays: list[bytes] = []
    place = 0

    def plain(value: Any) -> Any:
        nonlocal place
        if isinstance(value, np.ndarray):
            kind = value.dtype.str.lstrip("<=") if value.dtype.kind == "f" else "i4"
            data = np.ascontiguousarray(value, dtype=f"<{kind}")
            arrays.append(data.reshape(-1).view(np.uint8).reshape(data.size, data.itemsize).T.tobytes())
            reference = [kind, place, *value.shape]
            place += data.nbytes
            return {"$": reference}
        if isinstance(value, Mapping):
            return {key: plain(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [plain(each) for each in value]
        value = value.item() if isinstance(value, np.generic) else value
        return None if isinstance(value, float) and not isfinite(value) else value

    # JSON's escapes keep halves of surrogate pairs, which UTF-8 would not
    text = json.dumps(plain(content), separators=(",", ":"), allow_nan=False).encode("ascii")
    # without a time, so that equal models give equal pages
    return base64.b64encode(gzip.compress(struct.pack("<I", len(text)) + text + b"".join(arrays), mtime=0)).decode()


def unpacked(text: str) -> dict[str, Any]:
    """Return the content of a string that `packed` wrote; the page has a reader of its own."""
    data = gzip.decompress(base64.b64decode(text))
    (length,) = struct.unpack("<I", data[:4])
    body = memoryview(data)[4 + length :]

    def restored(value: Any) -> Any:
        if isinstance(value, dict) and set(value) == {"$"}:
            kind, start, *shape = value["$"]
            size, width = int(np.prod(shape)), np.dtype(kind).itemsize
            planes: AnyArray = np.frombuffer(body[start : start + size * width], np.uint8).reshape(width, size)
            return np.ascontiguousarray(planes.T).view(f"<{kind}").reshape(shape)
        if isinstance(value, dict):
            return {key: restored(each) for key, each in value.items()}
        return [restored(each) for each in value] if isinstance(value, list) else value

    return dict(restored(json.loads(data[4 : 4 + length])))
