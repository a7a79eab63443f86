"""Sums of logarithms, compiled by numba: several numbers at a time, where the C library takes them one by one."""

from __future__ import annotations

import numba
import numpy as np

from jointwise._typing import AnyArray
from jointwise.engines.compiled_parts import FAST

# Bits of a float64: a number is its fraction times a power of two. Fractions are taken from the root of 1/2 on.
HALF_ROOT, FRACTION_BITS = int(np.float64(np.sqrt(0.5)).view(np.int64)), 52
# log(2) in two parts, and the series of log(1 + f) in s = f / (2 + f), from fdlibm: errors are at most two units in
# the last place, however the compiler orders the sums.
LOG_2, LOG_2_REST = 6.93147180369123816490e-01, 1.90821492927058770002e-10
S2, S4, S6, S8 = 6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01, 2.222219843214978396e-01
S10, S12, S14 = 1.818357216161805012e-01, 1.531383769920937332e-01, 1.479819860511658591e-01


@numba.njit(cache=True, nogil=True, fastmath=FAST, inline="always")
def weighted_logs(values: AnyArray, weights: AnyArray, powers: AnyArray) -> float:
    """Return the sum of the weights times the logarithms of positive normal values, which are overwritten.

    Each logarithm is computed as in fdlibm, but without branches, so that the loop becomes vector instructions.

    Parameters
    ----------
    values, weights, powers : arrays of shape (n,)
        The last one is overwritten too.

    Examples
    --------
    >>> round(weighted_logs(np.array([1.0, np.e]), np.array([3.0, 2.0]), np.empty(2)), 12)
    2.0
    """
    bits, total = values.view(np.int64), 0.0
    for i in range(len(values)):  # to 2 ** power * (1 + f), with 1 + f from the root of 1/2 to that of 2
        power = (bits[i] - HALF_ROOT) >> FRACTION_BITS
        powers[i] = power
        bits[i] -= power << FRACTION_BITS
    for i in range(len(values)):
        f = values[i] - 1.0
        s = np.divide(f, 2.0 + f)  # by `/`, a zero would raise, and the loop would go one by one
        z, half = s * s, 0.5 * f * f
        rest = z * (S2 + z * (S4 + z * (S6 + z * (S8 + z * (S10 + z * (S12 + z * S14))))))
        log = powers[i] * LOG_2 + (f - (half - (s * (half + rest) + powers[i] * LOG_2_REST)))
        total += weights[i] * log
    return total
