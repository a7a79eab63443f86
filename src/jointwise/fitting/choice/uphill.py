"""Uphill in held-out scores: a book in which each is computed once, and a climb on a ladder of numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

import numpy as np

from jointwise._typing import FloatArray
from jointwise.engines.threads import in_threads
from jointwise.fitting.checkpoint import Checkpoint
from jointwise.rows.coded import CodedRows

# A climb goes on over this many numbers that gain nothing.
PATIENCE = 2
# What is tried is compared fold by fold. The first fold alone decides if it tells both apart by this many standard
# errors, found from this many blocks of its rows, each of at least so many; else all folds together may do so.
CLEAR_ERRORS, BLOCKS, BLOCK_ROWS = 2.5, 8, 16

# Held-out log-likelihoods of blocks of rows, by what was tried, as numbers, and the number of the fold.
Scores = dict[tuple[float, ...], tuple[float, ...]]
FoldScores = TypeVar("FoldScores", bound=Mapping[Any, tuple[float, ...]])


class Verdict(Enum):
    """What something that is tried does beside the best so far."""

    GAINS = 1
    UNCLEAR = 0  # it gains nothing, but what lies beyond it might
    LOSES = -1  # clearly, and so would what lies beyond it


class ScoreBook:
    """Held-out log-likelihoods of folds, each computed at most once and kept in a checkpoint.

    Parameters
    ----------
    checkpoint : Checkpoint
    compute : callable
        Returns the log-likelihoods of the blocks of a fold, from a key and the number of the fold.
    sizes : sequence of arrays of shape (blocks,)
        Rows of each block of each fold.
    least_gain : float
        Smallest gain, in nats per row, that counts.
    n_threads : int
        How many folds may be computed at once.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        compute: Callable[..., Sequence[float]],
        sizes: Sequence[FloatArray],
        least_gain: float,
        n_threads: int = 1,
    ) -> None:
        self._checkpoint = checkpoint
        self._compute = compute
        self._sizes = sizes
        self._least_gain = least_gain
        self._n_threads = n_threads
        blocks = [len(each) for each in sizes]
        self._scores: Scores = checkpoint.find("search", lambda data: of_folds(scores_from_dict(data), blocks)) or {}

    def mean(self, *key: float) -> float:
        """Return the mean log-likelihood of the rows of all folds."""
        folds = range(len(self._sizes))
        self._prepare([(key, fold) for fold in folds])
        found = sum(float(self._of(key, fold).sum()) for fold in folds)
        return found / sum(float(sizes.sum()) for sizes in self._sizes)

    def compare(self, key: Sequence[float], than: Sequence[float]) -> Verdict:
        """Return what a key does beside another; by the first fold alone where that is clear, else by all."""
        self._prepare([(key, 0), (than, 0)])
        gains, sizes = self._of(key, 0) - self._of(than, 0), self._sizes[0]
        if len(self._sizes) > 1 and (gain := clear_gain(gains, sizes, self._least_gain)):
            return Verdict.GAINS if gain > 0 else Verdict.LOSES
        folds = range(len(self._sizes))
        self._prepare([(each, fold) for fold in folds for each in (key, than)])
        if self.mean(*key) > self.mean(*than) + self._least_gain:
            return Verdict.GAINS
        gains = np.concatenate([self._of(key, fold) - self._of(than, fold) for fold in folds])
        clear = clear_gain(gains, np.concatenate(self._sizes), self._least_gain)
        return Verdict.LOSES if clear < 0 else Verdict.UNCLEAR

    def _prepare(self, wanted: Sequence[tuple[Sequence[float], int]]) -> None:
        """Compute scores of keys and folds that are missing, side by side."""
        distinct = dict.fromkeys((tuple(key), fold) for key, fold in wanted)
        missing = [(key, fold) for key, fold in distinct if _plain(key, fold) not in self._scores]

        def compute(number: int) -> None:
            key, fold = missing[number]
            self._scores[_plain(key, fold)] = tuple(float(score) for score in self._compute(*key, fold))
            if self._checkpoint.is_kept:  # then folds come one after the other
                self._checkpoint.keep("search", scores_to_dict(self._scores), draws_again=True)

        in_threads(compute, len(missing), self._n_threads)

    def _of(self, key: Sequence[float], fold: int) -> FloatArray:
        return np.array(self._scores[_plain(key, fold)])


def _plain(key: Sequence[float], fold: int) -> tuple[float, ...]:
    return (*map(float, key), float(fold))


def clear_gain(gains: FloatArray, sizes: FloatArray, least_gain: float) -> float:
    """Return the mean gain of a row, or zero if it is not far beyond noise; of fewer than `BLOCKS` blocks none is.

    Parameters
    ----------
    gains : array of shape (blocks,)
        Gain in log-likelihood of each block of rows.
    sizes : array of shape (blocks,)
        Rows of each block.
    least_gain : float
        Smallest gain, in nats per row, that counts.

    Examples
    --------
    >>> sizes = np.full(8, 20.0)
    >>> clear_gain(np.full(8, 2.0), sizes, 0.01), clear_gain(np.array([9.0, -8.0] * 4), sizes, 0.01)
    (0.1, 0.0)
    """
    n, n_rows = len(gains), float(sizes.sum())
    if n < BLOCKS:
        return 0.0
    mean = float(gains.sum() / n_rows)
    error = np.sqrt(np.sum((gains - mean * sizes) ** 2) * n / (n - 1)) / n_rows
    return mean if abs(mean) > CLEAR_ERRORS * error + least_gain else 0.0


def blocks_of(folds: Sequence[CodedRows]) -> list[list[CodedRows]]:
    """Return the held-out rows of each fold in blocks, by which the error of a gain is known.

    A single fold is whole, as nothing comes after it.
    """
    if len(folds) == 1:
        return [[folds[0]]]
    numbers = [min(max(len(fold) // BLOCK_ROWS, 1), BLOCKS) for fold in folds]
    return [[fold.take(np.arange(k, len(fold), n)) for k in range(n)] for fold, n in zip(folds, numbers, strict=True)]


def scores_to_dict(scores: Scores) -> dict[str, Any]:
    """Return a plain form of scores."""
    return {"scores": [[list(key), list(found)] for key, found in scores.items()]}


def scores_from_dict(data: Mapping[str, Any]) -> Scores:
    """Read what `scores_to_dict` wrote.

    >>> scores_from_dict(scores_to_dict({(8.0, 20.0, 0.0): (-1.5, -2.0)}))
    {(8.0, 20.0, 0.0): (-1.5, -2.0)}
    """
    return {tuple(map(float, key)): tuple(map(float, found)) for key, found in data["scores"]}


def of_folds(scores: FoldScores, blocks: Sequence[int]) -> FoldScores:
    """Return scores whose keys end with the number of a fold, if each has as many blocks as its fold.

    >>> of_folds({(8.0, 20.0, 1.0): (-1.5, -2.0)}, [3, 2])
    {(8.0, 20.0, 1.0): (-1.5, -2.0)}
    """
    for key, found in scores.items():
        if len(found) != blocks[int(key[-1])]:
            raise ValueError(f"fold {int(key[-1])} has {blocks[int(key[-1])]} blocks of rows, not {len(found)}")
    return scores


def climb(ladder: Sequence[Any], at: int, compare: Callable[[Any, Any], Verdict], patience: int = PATIENCE) -> int:
    """Return the position of the best rung found uphill from one, upwards first.

    Parameters
    ----------
    ladder : sequence
        What is tried, from least to most.
    at : int
        Position to begin from.
    compare : callable
        What a rung does beside another.
    patience : int
        The climb goes on over this many rungs that gain nothing, unless one clearly loses.

    Examples
    --------
    >>> score = {1: 0.0, 2: 1.0, 4: 0.9, 8: 3.0}
    >>> climb([1, 2, 4, 8], 1, lambda rung, than: Verdict(int(score[rung] > score[than])))
    3
    >>> climb([1, 2, 4, 8], 1, lambda rung, than: Verdict.GAINS if score[rung] > score[than] else Verdict.LOSES)
    1
    """
    above = _walk(ladder[at:], compare, patience)
    return at + above if above else at - _walk(ladder[at::-1], compare, patience)


def _walk(rungs: Sequence[Any], compare: Callable[[Any, Any], Verdict], patience: int) -> int:
    """Return the position of the best rung on a way, which ends where several gain nothing or one clearly loses."""
    best = 0
    for here in range(1, len(rungs)):
        if here - best > patience:
            break
        verdict = compare(rungs[here], rungs[best])
        if verdict is Verdict.LOSES:
            break
        best = here if verdict is Verdict.GAINS else best
    return best


def nearest(ladder: Sequence[float], value: float) -> int:
    """Position of the rung nearest to a value.

    >>> nearest([1, 2, 4], 3.5)
    2
    """
    return int(np.argmin([abs(rung - value) for rung in ladder]))
