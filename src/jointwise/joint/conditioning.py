"""Conditioning by positions, with a warning if the event is next to impossible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import exp, log

import numpy as np
from scipy.special import gammaincc, softmax

from jointwise._checks import listed, warn_caller
from jointwise._numerics import log_dot
from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.exceptions import ImpossibleEventError, InputError, RareEventWarning
from jointwise.joint.crosstab import region_masses
from jointwise.joint.events import Alternatives, Interval, Point, Region, boxes
from jointwise.joint.expert import Expert
from jointwise.joint.sum import mixed
from jointwise.tables.variables import Kind, Schema, Variable

# An event is next to impossible if a smaller share of rows is as far out: no usual table has that many rows.
RARE = 1e-8


def conditioned(schema: Schema, mixture: Expert, event: Mapping[int, Alternatives]) -> tuple[Schema, Expert]:
    r"""Return the variables and the mixture given ``event``; warn if it is next to impossible.

    An event with alternatives consists of disjoint boxes :math:`B_k`, and

    .. math:: f(x \mid \cup_k B_k) = \sum_k P(B_k) f(x \mid B_k) \, / \, \sum_k P(B_k)

    Parameters
    ----------
    schema : Schema
    mixture : Expert
    event : mapping of positions to regions or alternatives
        A point removes its variable.
    """
    if not event:
        return schema, mixture
    gone = {n for n, region in event.items() if isinstance(region, Point)}
    if len(gone) == len(schema):
        raise InputError(
            "What is given settles every variable, so nothing is left to describe; ask for its density (logpdf)."
        )
    names = listed(schema.names[n] for n in event)
    parts = list(boxes(event))
    try:
        rest = mixture.condition(parts[0]) if len(parts) == 1 else _given_any(mixture, event)
    except ImpossibleEventError:
        raise ImpossibleEventError(
            f"What is given of {names} has probability zero under this density, so it cannot be conditioned on."
        ) from None
    share = 0.0
    for box in parts:  # each part of a common event may be rare, so the most common one decides
        share = max(share, rarity(schema, mixture, box))
        if share >= RARE:
            break
    if share < RARE:
        warn_caller(
            f"What is given of {names} is next to impossible under this density: about {max(share, 1e-300):.1g} of all "
            "rows are as far out. The answer extrapolates.",
            RareEventWarning,
        )
    return schema.select([v.name for n, v in enumerate(schema) if n not in gone]), rest


def _given_any(mixture: Expert, event: Mapping[int, Alternatives]) -> Expert:
    """Return the mixture given any of several boxes."""
    points = {n: region for n, region in event.items() if isinstance(region, Point)}
    if points:  # first, for a density at a point is no probability; positions move up
        mixture = mixture.condition(points)
    left = [n for n in range(mixture.n_variables + len(points)) if n not in points]
    moved = {left.index(n): region for n, region in event.items() if n not in points}
    logs, found = [], []
    for box in boxes(moved):
        log_mass = mixture.log_probability(box)
        if log_mass > -np.inf:
            logs.append(log_mass)
            found.append(mixture.condition(box))
    if not found:
        raise ImpossibleEventError("Every alternative has probability zero.")
    return mixed(found, softmax(logs))


def rarity(schema: Schema, mixture: Expert, event: Mapping[int, Region]) -> float:
    r"""Share of rows that are as far out as ``event``.

    Each part of the event has a probability :math:`p_k` given the parts before it: that of its interval or set or, for
    a single value, that of a value at least as far out. They are combined by Fisher's method: for rows that are
    ordinary in all K parts, :math:`-\sum_k \log p_k` follows a gamma law of shape K. An event is thus not rare merely
    because it has many parts.

    Parameters
    ----------
    schema : Schema
    mixture : Expert
    event : mapping of positions to regions
        The event, of positive density.
    """
    masses = _by_components(mixture, event) if mixture.has_independent_components else _by_conditions(mixture, event)
    surprise = 0.0
    try:
        for (n, region), mass in zip(event.items(), masses, strict=True):
            share = _part(schema.variables[n], region, mass)
            surprise += -log(min(share, 1.0)) if share > 0 else np.inf
    except ImpossibleEventError:  # so far out that numbers end
        return 0.0
    return float(gammaincc(len(event), surprise))


# Probability of any region of one variable.
_Mass = Callable[[Region], float]


def _part(variable: Variable, region: Region, mass: _Mass) -> float:
    """Return the probability of a region; for a point, that of the values at least as far out."""
    if not isinstance(region, Point):
        return mass(region)
    if variable.categories is not None:  # at most this: the categories that are no more probable
        return len(variable.categories) * mass(region)
    if variable.kind is Kind.CONTINUOUS and (spike := mass(Point(region.value))) > 0:
        return spike
    return 2 * min(mass(Interval(-np.inf, region.value)), mass(Interval(region.value, np.inf)))


def _by_conditions(mixture: Expert, event: Mapping[int, Region]) -> Iterator[_Mass]:
    """Yield the law of each part's variable given the parts before it, by conditioning on them one by one."""
    rest = mixture.marginal(list(event))  # its first variable is that of the next part
    for region in event.values():
        yield partial(_first_mass, rest)
        if rest.n_variables > 1:
            given = rest.condition({0: region})
            rest = given if isinstance(region, Point) else given.marginal(range(1, given.n_variables))


def _first_mass(mixture: Expert, region: Region) -> float:
    return exp(mixture.log_probability({0: region}))


def _by_components(mixture: Expert, event: Mapping[int, Region]) -> Iterator[_Mass]:
    """Yield the same laws for independent components, at once: the posterior of the component tells them."""
    with np.errstate(divide="ignore"):  # log 0 = -inf: a component that is ruled out
        log_weights = np.log(mixture.weights)
        for n, region in event.items():
            dictionary, coefficients = mixture.factor(n)
            yield partial(_mixed_mass, dictionary, np.asarray(coefficients @ softmax(log_weights))[:, None])
            if isinstance(region, Point):
                likelihoods = log_dot(dictionary.logpdf([region.value]), coefficients)[0]
            else:
                likelihoods = np.log(region_masses(dictionary, coefficients, region))
            log_weights = log_weights + likelihoods


def _mixed_mass(dictionary: Dictionary, weights: FloatArray, region: Region) -> float:
    return float(region_masses(dictionary, weights, region)[0])
