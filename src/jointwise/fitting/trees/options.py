"""TreeOptions: what a fit of a mixture of trees is asked to do, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from jointwise._checks import check_integer, check_real
from jointwise.exceptions import InputError
from jointwise.fitting.options import check_run

# Options that identify a fit: its result depends on them.
IDENTIFYING = (
    "n_components", "states", "n_states", "alpha", "gamma", "n_models", "max_iter", "tol", "device", "random_state",
)  # fmt: skip
# What the states of a column of numbers may be.
STATES = ("auto", "bins", "atoms")


@dataclass(frozen=True)
class TreeOptions:
    """How to fit a mixture of trees to coded rows, checked on construction.

    Parameters are those of :class:`jointwise.TreeMixture` with the same names. `random_state` only tells the fit from
    others in its checkpoint: what is drawn comes from the fit's generator. With `keep_on_interrupt`, Ctrl-C in the last
    run ends it there and keeps what was reached.
    """

    n_components: int | Literal["auto", "many"] = "auto"
    states: Literal["auto", "bins", "atoms"] = "auto"
    n_states: int | Literal["auto"] = "auto"
    alpha: float | Literal["auto"] = "auto"
    gamma: float | Literal["auto"] = "auto"
    n_models: int | Literal["auto"] = "auto"
    max_iter: int = 500
    tol: float = 1e-4
    device: Literal["cpu", "cuda"] = "cpu"
    checkpoint: str | Path | None = None
    random_state: int | np.random.RandomState | None = None
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        check_run(self, ("auto", "many"))
        if self.states not in STATES:
            raise InputError(f'`states` must be "auto", "bins" or "atoms"; got {self.states!r}.')
        if self.states == "atoms" and (self.device == "cuda" or self.n_components == "many"):
            raise InputError(
                '`states="atoms"` needs device="cpu" and a number of trees other than "many". Use states="auto".'
            )
        if self.n_states != "auto":
            check_integer("n_states", self.n_states, 2)
        if self.alpha != "auto" and not check_real("alpha", self.alpha) > 0:
            raise InputError(f'`alpha` must be "auto" or a positive number of rows; got {self.alpha!r}.')
        if self.gamma != "auto" and check_real("gamma", self.gamma) < 0:
            raise InputError(f'`gamma` must be "auto" or a number of rows, zero or more; got {self.gamma!r}.')
