"""Damaged and hostile checkpoints: a fit goes on, or refuses in a sentence."""

import numpy as np
from tests.fuzz import material
from tests.fuzz.case import Case, law, refused
from tests.fuzz.containers import changed_file

from jointwise import JUPAD


def run(case: Case) -> None:
    """Change a checkpoint, or leave it as it is, and fit."""
    found, expected = material.checkpoints()
    which = case.rng.randrange(len(found))
    place = case.folder / "fit.checkpoint"
    rows = material.checkpointed_rows()
    how, data = ("as it was", found[which]) if case.rng.random() < 0.1 else changed_file(case.rng, found[which])
    case.note(f"checkpoint {which}, {how}, {len(data):,} bytes")
    place.write_bytes(data)
    gone, model = refused(JUPAD(**material.CHECKPOINTED, checkpoint=place).fit, rows)
    if gone:
        law(how != "as it was", f"a good checkpoint is refused: {model}")
        law(how != "raw" or place.read_bytes() == data, "a damaged checkpoint is not left as it was")
        return
    scores = model.score_samples(rows)
    law(np.isfinite(scores).all(), "a fit that went on gives its rows no density")
    if how == "as it was":
        law(np.array_equal(scores, expected), "a fit that went on has ended elsewhere")
