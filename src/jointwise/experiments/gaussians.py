"""Figure 1 (b): mixtures of Gaussians, the home ground of Gaussian mixtures and of sinc interpolation."""

from __future__ import annotations

from jointwise.experiments.synthetic import SyntheticExperiment
from jointwise.experiments.telling import CPD, DEFAULT, INDEPENDENCE, MIXTURES, PAPER, Claim

EXPERIMENT = SyntheticExperiment(
    name="gaussians",
    title="Figure 1 (b): mixtures of Gaussians",
    intro=(
        "Truths of 6 variables and rank 8; every conditional of a variable is a mixture of 5 Gaussians. The paper "
        "finds its method ahead where rows are few, and the others level or ahead where they are many."
    ),
    claims=(
        Claim(PAPER, (CPD, MIXTURES), largest=5_000),
        Claim(DEFAULT, (PAPER, CPD, MIXTURES, INDEPENDENCE), smallest=1_000),
    ),
)
