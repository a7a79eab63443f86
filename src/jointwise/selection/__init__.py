"""Choices made from the data, by held-out likelihood: dictionaries, and the strength of the prior."""

from jointwise.selection.dictionaries import choose_dictionaries, choose_dictionary
from jointwise.selection.prior import STRENGTHS, choose_atoms_and_strength

__all__ = ["STRENGTHS", "choose_atoms_and_strength", "choose_dictionaries", "choose_dictionary"]
