"""Plain forms of block mixtures: they come back as they were, and hostile ones are refused."""

import json
from copy import deepcopy

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from tests.joint.block_cases import BENT, SPIKED, gaussian_block, mixture, rows

from jointwise.exceptions import FileFormatError, InputError
from jointwise.joint import serialization
from jointwise.joint.block import BlockMixture
from jointwise.joint.block_gaussian import GaussianBlock
from jointwise.joint.events import Interval, Point
from jointwise.warps import Warp


@pytest.mark.parametrize(
    "f",
    [
        mixture(0),
        mixture(1).condition({SPIKED: Interval(-1.0, 2.0), BENT: Interval(0.0, np.inf)}),
        mixture(1).condition({BENT: Interval(0.0, np.inf)}).marginal([0, 2]),
        mixture(2).condition({1: Point(0.0), 4: Point(0.25)}),
    ],
    ids=["plain", "windows", "hidden", "block alone"],
)
def test_a_file_gives_the_same_density(f, tmp_path):
    path = tmp_path / "expert"
    serialization.write(path, f.to_dict())
    g = serialization.read(path, BlockMixture.from_dict)
    X = rows(f, 3)
    assert_array_equal(g.logpdf(X), f.logpdf(X))
    assert g.merge_key == f.merge_key
    json.dumps(f.to_dict(), default=lambda a: a.tolist())


def damaged(change):
    data = mixture(0).to_dict()
    data["block"] = data["block"] | {"warps": deepcopy(data["block"]["warps"])}
    change(data)
    return data


def block(**parts):
    return lambda data: data["block"].update(parts)


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.pop("weights"),
        lambda data: data.update(kind="product"),
        lambda data: data.update(more=1),
        lambda data: data.update(weights=np.ones(2)),
        lambda data: data.update(weights=np.ones(3) / 3),
        lambda data: data.update(columns=[0, 2]),
        lambda data: data.update(columns=[0, 2, 2]),
        lambda data: data.update(columns=[0, 2, 9]),
        lambda data: data.update(columns=[0, 2, 3.0]),
        lambda data: data.update(columns=[0, 2, True]),
        lambda data: data.update(columns=None),
        lambda data: data.update(coefficients=[]),
        lambda data: data.update(block=None),
        lambda data: data["block"].pop("means"),
        block(means=np.zeros(2)),
        block(means=np.full((2, 3), np.nan)),
        block(means=np.zeros((2, 2))),
        block(means="abc"),
        block(covariances=np.zeros((2, 9))),
        block(covariances=np.full((2, 9), np.inf)),
        block(covariances=np.ones((2, 8))),
        block(covariances=np.array([[1.0, 0.5, 0, 0, 1, 0, 0, 0, 1]] * 2)),
        block(covariances=-np.array([np.eye(3).ravel()] * 2)),
        block(spikes=[[1.0, 0.0], [2.0], []]),
        block(spikes=[[-0.5, 1.0], [2.5], []]),
        block(spikes=[[-0.5, np.inf], [2.0], []]),
        block(spikes=[[-0.5, 1.0], [2.0]]),
        block(spike_weights=[None, None, None]),
        block(spike_weights=[np.full((2, 2), 0.9), np.full((1, 2), 0.5), None]),
        block(spike_weights=[np.full((2, 2), -0.1), np.full((1, 2), 0.5), None]),
        block(whole=[False, True]),
        block(whole=[0, 1, 0]),
        block(whole=3),
        block(low=np.zeros((2, 3)), high=np.zeros((2, 3))),
        block(low=np.full((2, 3), np.nan)),
        block(low=np.full((2, 2), -1.0)),
        block(warps=[]),
        block(warps=[1, 2, 3]),
        lambda data: data["block"]["warps"][0].update(slopes=np.zeros(2)),
    ],
)
def test_hostile_dicts_are_refused(change):
    with pytest.raises(FileFormatError):
        BlockMixture.from_dict(damaged(change))


def test_sizes_are_bounded():
    warps = (Warp.line(0.0, 1.0),)
    with pytest.raises(InputError, match="1 to 1024 coordinates"):
        GaussianBlock(warps, np.zeros((1, 1025)), np.zeros((1, 1, 1)), ([],), (np.empty((0, 1)),), (False,))
    spikes = tuple([float(k)] for k in range(9))
    with pytest.raises(InputError, match="At most 8 columns"):
        GaussianBlock(warps * 9, np.zeros((1, 9)), 4 * np.eye(9)[None], spikes, ([[0.5]],) * 9, (True,) * 9)


def test_a_block_is_immutable():
    b = gaussian_block(0)
    for array in (b.means, b.covariances, b.low, b.spikes[0], b.spike_weights[0]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


def test_a_set_that_splits_too_far_is_refused(monkeypatch):
    from jointwise.joint import block_events
    from jointwise.joint.events import Values

    monkeypatch.setattr(block_events, "MOST_NUMBERS", 100)
    with pytest.raises(InputError, match="splits the mixture into"):
        mixture(0).condition({2: Values(tuple(np.arange(0.0, 40.0, 2.0)))})
