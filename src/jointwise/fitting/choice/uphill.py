"""Uphill in held-out scores: a book in which each is computed once, and a climb on a ladder of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from jointwise.fitting.checkpoint import Checkpoint

# A climb goes on over this many numbers that gain nothing.
PATIENCE = 2

# Held-out scores by what was tried, as numbers.
Scores = dict[tuple[float, ...], float]


class ScoreBook:
    """Held-out scores, each computed at most once and kept in a checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
    compute : callable
        Returns the score of a key.
    """

    def __init__(self, checkpoint: Checkpoint, compute: Callable[..., float]) -> None:
        self._checkpoint = checkpoint
        self._compute = compute
        self._scores: Scores = checkpoint.find("search", scores_from_dict) or {}

    def __call__(self, *key: float) -> float:
        """Return the score of a key."""
        plain = tuple(map(float, key))
        if plain not in self._scores:
            self._scores[plain] = self._compute(*key)
            self._checkpoint.keep("search", scores_to_dict(self._scores), draws_again=True)
        return self._scores[plain]


def scores_to_dict(scores: Scores) -> dict[str, Any]:
    """Return a plain form of scores."""
    return {"scores": [[*map(float, key), float(score)] for key, score in scores.items()]}


def scores_from_dict(data: Mapping[str, Any]) -> Scores:
    """Read what `scores_to_dict` wrote.

    >>> scores_from_dict(scores_to_dict({(8.0, 20.0): -1.5}))
    {(8.0, 20.0): -1.5}
    """
    return {tuple(map(float, key)): float(score) for *key, score in data["scores"]}


def climb(
    ladder: Sequence[float], at: int, score: Callable[[Any], float], least_gain: float, patience: int = PATIENCE
) -> int:
    """Return the position of the best rung found uphill from one, upwards first.

    Parameters
    ----------
    ladder : sequence of numbers
    at : int
        Position to begin from.
    score : callable
        Score of a rung.
    least_gain : float
        Smallest gain that counts.
    patience : int
        The climb goes on over this many rungs that gain nothing.

    Examples
    --------
    >>> climb([1, 2, 4, 8], 1, {1: 0.0, 2: 1.0, 4: 0.9, 8: 3.0}.get, 0.1)
    3
    """
    above = _walk(ladder[at:], score, least_gain, patience)
    return at + above if above else at - _walk(ladder[at::-1], score, least_gain, patience)


def _walk(rungs: Sequence[float], score: Callable[[Any], float], least_gain: float, patience: int) -> int:
    """Return the position of the best rung on a way, which ends where several gain nothing."""
    best = 0
    for here in range(1, len(rungs)):
        if here - best > patience:
            break
        if score(rungs[here]) > score(rungs[best]) + least_gain:
            best = here
    return best


def nearest(ladder: Sequence[float], value: float) -> int:
    """Position of the rung nearest to a value.

    >>> nearest([1, 2, 4], 3.5)
    2
    """
    return int(np.argmin([abs(rung - value) for rung in ladder]))
