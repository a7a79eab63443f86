"""Options: what a fit is asked to do, checked in one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from jointwise._checks import check_choice, check_integer, check_real, shown
from jointwise.dictionary import Dictionary
from jointwise.engines.cuda import check_cuda
from jointwise.exceptions import InputError

METHODS = ("rows", "pairs", "paper")


def check_run(options: Any, words: Sequence[str] = ("auto",)) -> None:
    """Raise unless what the options of every kind of fit share is as it must be; `n_components` may be a word."""
    check_choice("device", options.device, ("cpu", "cuda"))
    if options.device == "cuda":
        check_cuda()
    for name, known in (("n_components", words), ("n_models", ("auto",))):
        given = getattr(options, name, "auto")
        if not (isinstance(given, str) and given in known):
            check_integer(name, given, 1)
    check_integer("max_iter", options.max_iter, 1)
    if check_real("tol", options.tol) < 0:
        raise InputError(f"`tol` must not be negative; got {options.tol!r}.")


@dataclass(frozen=True)
class Options:
    """How to fit coded rows, or the counts of their pairs of columns, checked on construction.

    Parameters are those of :class:`jointwise.JUPAD` with the same names. `random_state` only tells the fit from others
    in its checkpoint: what is drawn comes from the fit's generator. With `keep_on_interrupt`, Ctrl-C in the last run
    ends it there and keeps what was reached.
    """

    method: Literal["rows", "pairs", "paper"] = "rows"
    n_components: int | Literal["auto"] = "auto"
    beta: float | Literal["auto"] = "auto"
    n_models: int | Literal["auto"] = "auto"
    dictionaries: Literal["auto"] | Mapping[str, Dictionary] = "auto"
    learn_dictionary: bool | Literal["auto"] = "auto"
    learning_rates: tuple[float, float, float] | None = None
    n_init: int = 5
    max_iter: int = 500
    tol: float = 1e-4
    device: Literal["cpu", "cuda"] = "cpu"
    checkpoint: str | Path | None = None
    random_state: int | np.random.RandomState | None = None
    keep_on_interrupt: bool = False

    def __post_init__(self) -> None:
        check_choice("method", self.method, METHODS)
        check_run(self)
        if self.beta != "auto" and check_real("beta", self.beta) < 0:
            raise InputError(f'`beta` must be "auto" or a number of rows, zero or more; got {self.beta!r}.')
        if not isinstance(self.learn_dictionary, bool) and self.learn_dictionary != "auto":
            raise InputError(f'`learn_dictionary` must be True, False or "auto"; got {shown(self.learn_dictionary)}.')
        check_integer("n_init", self.n_init, 1)
        self._check_dictionaries()
        if self.learning_rates is not None:
            self._check_rates(self.learning_rates)

    @property
    def given(self) -> Mapping[str, Dictionary]:
        """Dictionaries that are given, by column."""
        return self.dictionaries if isinstance(self.dictionaries, Mapping) else {}

    def _check_dictionaries(self) -> None:
        if not isinstance(self.dictionaries, Mapping) and self.dictionaries != "auto":
            raise InputError(
                f'dictionaries must be "auto" or a mapping from names to Dictionary, got {shown(self.dictionaries)}.'
            )
        for name, given in self.given.items():
            if not isinstance(given, Dictionary):
                raise InputError(f"dictionaries[{shown(name)}] must be a Dictionary, got {type(given).__name__}.")

    def _check_rates(self, rates: Any) -> None:
        if self.method != "paper":
            raise InputError(
                f'`learning_rates` belong to method="paper"; leave them out with method="{self.method}", which has '
                "none to set."
            )
        if not isinstance(rates, Sequence) or isinstance(rates, str) or len(rates) != 3:
            raise InputError(f"`learning_rates` must be three numbers (eta_T, eta_B, eta_L) or None; got {rates!r}.")
        if not all(check_real("learning_rates", rate) > 0 for rate in rates):
            raise InputError(f"`learning_rates` must be positive; got {rates!r}.")
