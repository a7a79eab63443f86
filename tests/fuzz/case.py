"""One case of a campaign: where its choices come from, and what counts as a failure."""

import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.internal.constants_ast import Constants
from sklearn.exceptions import NotFittedError

from jointwise.exceptions import JointwiseError

# What may be raised at hostile input.
REFUSALS = (JointwiseError, NotFittedError)
# A message quotes what came, but not all of it.
LONGEST_MESSAGE = 5_000
# Hypothesis begins with its simplest example; the last of a few is a random one.
EXAMPLES = 4
# Where hypothesis looks for constants in the source of local modules, to try them as values.
LOCAL_CONSTANTS = "hypothesis.internal.conjecture.providers._get_local_constants"


class LawBrokenError(AssertionError):
    """An answer that cannot be right."""


@dataclass
class Case:
    """Source of all choices of one case.

    Parameters
    ----------
    campaign : str
    seed, number : int
    folder : Path
        Empty folder of its own, which is also the working directory.
    """

    campaign: str
    seed: int
    number: int
    folder: Path
    notes: list[str] = field(default_factory=list)

    @cached_property
    def rng(self) -> Random:
        """Python's generator, settled by campaign, seed and number."""
        return Random(f"{self.campaign} {self.seed} {self.number}")

    @cached_property
    def np_rng(self) -> np.random.Generator:
        """The same for numpy."""
        return np.random.default_rng(self.rng.getrandbits(64))

    def drawn(self, strategy: Any) -> Any:
        """Return one example of a hypothesis strategy; which one must not hang on the modules imported by now."""
        examples = []

        @seed(self.rng.getrandbits(64))
        @settings(
            max_examples=EXAMPLES,
            database=None,
            deadline=None,
            derandomize=False,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def gather(example):
            examples.append(example)

        with mock.patch(LOCAL_CONSTANTS, Constants, create=True):
            gather()
        return examples[-1]

    def note(self, what: str) -> None:
        """Keep a line on what is tried, which is shown with a failure."""
        self.notes.append(what)


@dataclass(frozen=True)
class Campaign:
    """A kind of attack.

    Parameters
    ----------
    name : str
    run : callable
        Takes a `Case`; returns if all went well.
    seconds : float
        The most processor time of a case.
    """

    name: str
    run: Callable[[Case], None]
    seconds: float = 20.0


def refused(call: Callable[..., Any], *args: Any, **options: Any) -> tuple[bool, Any]:
    """Call, and return (False, the result) or (True, the error) if it is an error that users are promised."""
    try:
        return False, call(*args, **options)
    except REFUSALS as error:
        law(len(str(error)) <= LONGEST_MESSAGE, f"a message of {len(str(error)):,} characters: {str(error)[:200]}")
        return True, error
    except ValueError as error:  # what scikit-learn's own validation says of an array
        if "sklearn" not in Path(traceback.extract_tb(error.__traceback__)[-1].filename).parts:
            raise
        return True, error


def law(holds: Any, sentence: str) -> None:
    """Fail unless something holds."""
    if not holds:
        raise LawBrokenError(sentence)


def is_probability(p: float) -> bool:
    """Whether a number can be a probability, up to rounding."""
    return math.isfinite(p) and -1e-9 <= p <= 1 + 1e-9
