"""Figure 1 (c): mixtures of Laplacians beside mixtures of Gaussians."""

from __future__ import annotations

from jointwise.experiments.distances import CPD, DEFAULT, INDEPENDENCE, MIXTURES, PAPER
from jointwise.experiments.synthetic import SyntheticExperiment
from jointwise.experiments.verdicts import Claim

EXPERIMENT = SyntheticExperiment(
    name="laplacians-gaussians",
    title="Figure 1 (c): mixtures of Laplacians and of Gaussians",
    intro=(
        "Truths of 7 variables and rank 10; every conditional is a mixture of 5 Laplacians (the first five variables) "
        "or of 5 Gaussians (the last two)."
    ),
    claims=(
        Claim(PAPER, (CPD, MIXTURES)),
        Claim(DEFAULT, (PAPER, CPD, MIXTURES, INDEPENDENCE), smallest=1_000),
    ),
)
