"""What compiled passes share: rows cut into parts, logarithms turned into posteriors.

The rows are cut into parts by their number alone. Each part fills its own sums, which are added in order. So the result
is the same, bit for bit, on every repeat and for every number of threads.
"""

from __future__ import annotations

import numba
import numpy as np

from jointwise._typing import AnyArray

# Fewest rows of a part, most parts, and most bytes of all their sums.
LEAST_PART, MOST_PARTS, PARTS_BYTES = 4096, 64, 512 * 2**20
# Smaller posteriors count as zero: they are less than the rounding of the others, and most are.
LEAST_POSTERIOR = 1e-16

FAST = {"reassoc", "contract", "arcp", "nsz"}  # fast arithmetic in which infinite logarithms stay what they are


def count_parts(n: int, n_bytes: int, least: int = 0) -> int:
    """Return the number of parts of n rows, each with sums of this many bytes; it does not depend on the machine.

    A part has at least `LEAST_PART` rows, or `least` if that is more.
    """
    most = min(MOST_PARTS, PARTS_BYTES // max(n_bytes, 1))
    return int(np.clip(n // max(LEAST_PART, least), 1, max(most, 1)))


def locked(array: AnyArray) -> AnyArray:
    """Return a contiguous read-only view, whatever the array; numba compiles anew for each kind of array."""
    view = np.ascontiguousarray(array).view(np.ndarray)
    view.flags.writeable = False
    return view


@numba.njit(cache=True, nogil=True, fastmath=FAST)
def to_posteriors(logs: AnyArray, weight: float) -> float:
    """Turn logarithms into posteriors times a weight, in place; return the log of their sum."""
    top = -np.inf
    for r in range(len(logs)):
        top = max(top, logs[r])
    total = 0.0
    for r in range(len(logs)):
        logs[r] = np.exp(logs[r] - top)
        total += logs[r]
    least, share = LEAST_POSTERIOR * total, weight / total
    for r in range(len(logs)):
        logs[r] = logs[r] * share if logs[r] > least else 0.0
    log_sum: float = top + np.log(total)
    return log_sum
