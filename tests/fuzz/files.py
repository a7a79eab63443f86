"""Damaged and hostile model files: refused in a sentence, or a density that answers."""

import numpy as np
from tests.fuzz import material
from tests.fuzz.case import Case, is_probability, law, refused
from tests.fuzz.containers import changed_file

import jointwise
from jointwise import JointDensity

QUANTILES = [0.01, 0.5, 0.99]


def run(case: Case) -> None:
    """Change a file and load it; whatever loads must answer quickly."""
    which = case.rng.randrange(len(material.model_files()))
    how, data = changed_file(case.rng, material.model_files()[which])
    case.note(f"file {which}, {how}, {len(data):,} bytes")
    place = case.folder / "model.jw"
    place.write_bytes(data)
    gone, density = refused(jointwise.load, place)
    if not gone:
        dictionaries = [density.mixture.dictionary(n) for n in range(len(density.names))]
        case.note(f"loaded: {density!r} {[list(d.families) for d in dictionaries]}")
        use(density)


def use(density: JointDensity) -> None:
    """Ask a density everything once."""
    law(len(density.names) == len(set(density.names)), "names are not unique")
    encoded = density.mixture.sample(5, np.random.default_rng(0))
    law(np.isfinite(encoded).all(), f"a sample is not finite: {encoded.tolist()}")
    law(not np.isnan(density.mixture.logpdf(encoded)).any(), "the log-density of a sample is not a number")
    gone, rows = refused(density.sample, 5, rng=0)
    if not gone:
        refused(density.logpdf, rows)
    for name, variable in zip(density.names, density.schema, strict=True):
        value = variable.decode_value(float(encoded[0, density.names.index(name)]))
        for region in (value, {value}, (None, value), (value, None)):
            gone, p = refused(density.probability, {name: region})
            law(gone or is_probability(p), f"P({name} in {region!r}) = {p}")
        gone, rest = refused(density.condition, {name: (None, value)})
        if not gone:
            law(np.isfinite(rest.mixture.sample(2, np.random.default_rng(0))).all(), f"a sample given {name} is not")
        refused(density.marginal, [name])
        refused(density.quantile, name, QUANTILES)
    refused(density.mean)
    refused(density.var)
    refused(density.mode)
    refused(repr, density)
