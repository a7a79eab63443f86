"""What the atoms of a variable are: categories or numbers, and which numbers have a probability of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jointwise._typing import FloatArray
from jointwise.dictionary import Dictionary
from jointwise.families import Category


@dataclass(frozen=True)
class AtomKinds:
    """The kinds of atoms of a variable, which a mixture may know without making the atoms.

    Parameters
    ----------
    n_categories : int
        Categories have codes below this; 0 if no atom is a category.
    has_numbers : bool
        Whether some atom is no category.
    is_continuous : bool
        Whether some atom has a density with respect to Lebesgue measure.
    spikes : array
        Sorted locations of the point masses, where the base measure has a unit mass.

    Examples
    --------
    >>> AtomKinds.of(Dictionary.grid("gaussian", 0, 1, n=2, scale=1) + Dictionary.points([3.0]))
    AtomKinds(n_categories=0, has_numbers=True, is_continuous=True, spikes=array([3.]))
    """

    n_categories: int
    has_numbers: bool
    is_continuous: bool
    spikes: FloatArray

    @classmethod
    def of(cls, dictionary: Dictionary) -> AtomKinds:
        """Return the kinds of the atoms of a dictionary."""
        codes = [family.code.max() for family in dictionary.families if isinstance(family, Category)]
        has_numbers = len(codes) < len(dictionary.families)
        return cls(int(max(codes, default=-1)) + 1, has_numbers, dictionary.is_continuous, dictionary.spikes)

    @classmethod
    def joined(cls, kinds: Sequence[AtomKinds]) -> AtomKinds:
        """Return the kinds of all atoms of several mixtures."""
        return cls(
            max(each.n_categories for each in kinds),
            any(each.has_numbers for each in kinds),
            any(each.is_continuous for each in kinds),
            np.unique(np.concatenate([each.spikes for each in kinds])),
        )
