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


@dataclass(frozen=True)
class Options:
    """How to fit coded rows, or the counts of their pairs of columns; see :class:`jointwise.JUPAD`.

    Parameters
    ----------
    method : "rows", "pairs" or "paper"
        Penalised likelihood of the rows, composite likelihood of pairs, or the paper's three stages on pairs.
    n_components : int or "auto"
        Number of components at the start of each model. "auto" chooses by held-out likelihood; from pairs it is 10.
    beta : float or "auto"
        Strength of the prior, in rows per component. Rows only.
    n_models : int or "auto"
        Number of models whose mean is the density. Rows only.
    dictionaries : "auto" or mapping of column names to Dictionary
        Atoms that are given; the other columns get the automatic choice.
    learn_dictionary : bool or "auto"
        Whether locations and scales of atoms are learned too. Rows only.
    learning_rates : (eta_T, eta_B, eta_L) or None
        The paper's learning rates of stages (i), (iii) for coefficients and (iii) for weights; found by backtracking
        if None. Paper only.
    n_init : int
        Number of starts, shared by the models; for the paper, splits of the variables tried in stage (ii).
    max_iter : int
        Most steps of the last run.
    tol : float
        The last run stops when two steps in a row each gain no more than this: nats per row or pair, or the relative
        change of the paper's J. With more than 20,000 rows the tolerance is smaller.
    device : "cpu" or "cuda"
        Where passes over the rows run.
    checkpoint : str or Path, optional
        File from which a stopped fit goes on. Rows only.
    random_state : int, RandomState or None
        Written to the checkpoint, to tell this fit from others; the draws come from the generator of the fit.
    keep_on_interrupt : bool
        Whether Ctrl-C in the last run ends it there and keeps what was reached, rather than being raised.
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
        check_choice("device", self.device, ("cpu", "cuda"))
        if self.device == "cuda":
            check_cuda()
        for name in ("n_components", "n_models"):
            if getattr(self, name) != "auto":
                check_integer(name, getattr(self, name), 1)
        if self.beta != "auto" and check_real("beta", self.beta) < 0:
            raise InputError(f'`beta` must be "auto" or a number of rows, zero or more; got {self.beta!r}.')
        if not isinstance(self.learn_dictionary, bool) and self.learn_dictionary != "auto":
            raise InputError(f'`learn_dictionary` must be True, False or "auto"; got {shown(self.learn_dictionary)}.')
        check_integer("n_init", self.n_init, 1)
        check_integer("max_iter", self.max_iter, 1)
        if check_real("tol", self.tol) < 0:
            raise InputError(f"`tol` must not be negative; got {self.tol!r}.")
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
