"""BlockOptions: what a fit of Gaussian blocks is asked to do, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from jointwise._checks import check_choice, check_real
from jointwise.exceptions import InputError
from jointwise.fitting.blocks.warps import WARPS, WarpName
from jointwise.fitting.options import check_run

# Options that identify a fit: its result depends on them.
IDENTIFYING = ("warp", "n_components", "nu", "beta", "n_models", "max_iter", "tol", "device", "random_state")


@dataclass(frozen=True)
class BlockOptions:
    """How to fit Gaussian blocks to coded rows, checked on construction.

    Parameters are those of :class:`jointwise.GaussianBlocks` with the same names. `random_state` only tells the fit
    from others in its checkpoint: what is drawn comes from the fit's generator. With `keep_on_interrupt`, Ctrl-C in
    the last run ends it there and keeps what was reached.
    """

    warp: WarpName = "scores"
    n_components: int | Literal["auto"] = "auto"
    nu: float | Literal["auto"] = "auto"
    beta: float = 0.03
    n_models: int | Literal["auto"] = "auto"
    max_iter: int = 500
    tol: float = 1e-4
    device: Literal["cpu", "cuda"] = "cpu"
    checkpoint: str | Path | None = None
    random_state: int | np.random.RandomState | None = None
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        check_choice("warp", self.warp, WARPS)
        check_run(self)
        if self.nu != "auto" and not check_real("nu", self.nu) > 0:
            raise InputError(f'`nu` must be "auto" or a positive number of rows; got {self.nu!r}.')
        if check_real("beta", self.beta) < 0:
            raise InputError(f"`beta` must be a number of rows, zero or more; got {self.beta!r}.")
