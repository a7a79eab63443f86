"""Scores of folds, and climbs by them."""

import numpy as np
import pytest

from jointwise.fitting.checkpoint import Checkpoint
from jointwise.fitting.choice.uphill import BLOCK_ROWS, BLOCKS, ScoreBook, Verdict, blocks_of, climb, of_folds
from jointwise.marginals import Profile
from jointwise.rows.coded import CodedRows

SIZES = [np.full(BLOCKS, 10.0), np.full(1, 80.0), np.full(1, 80.0)]


def book(means, noise=0.0, sizes=SIZES):
    """Return a book whose keys have these mean scores, and the folds that it asks for."""
    asked = []

    def compute(key, fold):
        asked.append((key, fold))
        own = np.random.default_rng([key, fold]).normal(0, noise, len(sizes[fold])) if noise else 0.0
        return (means[key] + own) * sizes[fold]

    return ScoreBook(Checkpoint(), compute, sizes, 0.01), asked


def test_the_first_fold_decides_where_it_is_clear():
    scores, asked = book([-1.0, -2.0])
    assert scores.compare((0,), (1,)) is Verdict.GAINS
    assert scores.compare((1,), (0,)) is Verdict.LOSES
    assert sorted(asked) == [(0, 0), (1, 0)]  # each once


def test_all_folds_decide_otherwise():
    scores, asked = book([-1.0, -1.005, -1.3], noise=1.0)
    means = [scores.mean(k) for k in range(3)]
    for key, than in ((0, 1), (1, 0), (2, 1)):
        found = scores.compare((key,), (than,))
        assert found is (Verdict.GAINS if means[key] > means[than] + 0.01 else Verdict.UNCLEAR)
    assert len(asked) == len(set(asked)) == 9


def test_a_single_fold_knows_no_clear_loss():
    scores, _ = book([-1.0, -2.0], sizes=[np.full(1, 80.0)])
    assert scores.compare((0,), (1,)) is Verdict.GAINS
    assert scores.compare((1,), (0,)) is Verdict.UNCLEAR


def test_a_clear_loss_ends_a_climb():
    seen = []

    def compare(rung, than):
        seen.append(rung)
        return Verdict.LOSES

    assert climb([1, 2, 3, 4, 5], 2, compare) == 2
    assert seen == [4, 2]


@pytest.mark.parametrize(
    ("n", "n_blocks"), [(BLOCKS * BLOCK_ROWS, BLOCKS), (BLOCKS * BLOCK_ROWS - 1, BLOCKS - 1), (BLOCK_ROWS - 1, 1)]
)
def test_blocks_hold_each_row_once(n, n_blocks):
    data = {"a": np.arange(n) / 7}
    schema = Profile.of(data).schema()
    rows = CodedRows.of(data, schema, Profile.of(data).axes(schema, 4))
    for blocks in blocks_of([rows, rows]):
        assert len(blocks) == n_blocks
        assert sum(block.n_rows for block in blocks) == n
    assert len(blocks_of([rows])[0]) == 1


def test_what_clearly_loses_in_all_folds_together_ends_a_climb():
    scores = {1: np.zeros(4), 2: np.array([-8.0, -9.0, -8.5, -7.5]), 3: np.array([-9.0, 8.0, -8.0, 7.0])}
    sizes = [np.full(4, 16.0)] * 3  # too few blocks in each fold
    tried = ScoreBook(Checkpoint(), lambda key, fold: scores[key], sizes, 0.01)
    assert tried.compare((2,), (1,)) is Verdict.LOSES
    assert tried.compare((3,), (1,)) is Verdict.UNCLEAR


@pytest.mark.parametrize(
    "scores", [{(8.0, 20.0, 0.0): (-1.5,)}, {(8.0, 0.0): (-1.0, -2.0, -3.0)}, {(8.0, 7.0): (-1.0, -2.0)}]
)
def test_scores_of_a_checkpoint_have_the_blocks_of_their_fold(scores):
    with pytest.raises((ValueError, IndexError)):
        of_folds(scores, [2, 3])
