"""Array aliases used across the package."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
ComplexArray: TypeAlias = NDArray[np.complex128]
BoolArray: TypeAlias = NDArray[np.bool_]
CodeArray: TypeAlias = NDArray[np.uint8] | NDArray[np.uint16]
AnyArray: TypeAlias = NDArray[Any]
