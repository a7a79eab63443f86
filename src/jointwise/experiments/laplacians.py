"""Figure 1 (a): mixtures of Laplacians, which are neither smooth nor band-limited."""

from __future__ import annotations

from jointwise.experiments.distances import CPD, DEFAULT, INDEPENDENCE, MIXTURES, PAPER
from jointwise.experiments.synthetic import SyntheticExperiment
from jointwise.experiments.verdicts import Claim

EXPERIMENT = SyntheticExperiment(
    name="laplacians",
    title="Figure 1 (a): mixtures of Laplacians",
    intro="Truths of 5 variables and rank 10; every conditional of a variable is a mixture of 5 Laplacians.",
    claims=(
        Claim(PAPER, (CPD, MIXTURES)),
        Claim(DEFAULT, (PAPER, CPD, MIXTURES, INDEPENDENCE), smallest=1_000),
    ),
)
