"""Figure 1 (d): continuous variables and one with ten states."""

from __future__ import annotations

from jointwise.experiments.distances import CPD, DEFAULT, INDEPENDENCE, MIXTURES, PAPER
from jointwise.experiments.synthetic import SyntheticExperiment
from jointwise.experiments.verdicts import Claim

EXPERIMENT = SyntheticExperiment(
    name="hybrid",
    title="Figure 1 (d): continuous and discrete variables",
    intro=(
        "Truths of 4 variables and rank 8: three with conditionals that are mixtures of 5 Gaussians, and one with 10 "
        "states. The states of CPD-3 are bins of their own. Gaussian mixtures, which the paper leaves out here, take "
        "the states for real numbers: their density at a state is compared with its probability, and a cluster that "
        "holds rows of one state only has no covariance."
    ),
    claims=(
        Claim(PAPER, (CPD,)),
        Claim(DEFAULT, (PAPER, CPD, MIXTURES, INDEPENDENCE), smallest=1_000),
    ),
)
