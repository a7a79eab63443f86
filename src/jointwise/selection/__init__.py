"""Choices made from the data, by held-out likelihood: dictionaries, and the strength of the prior."""

from jointwise.selection.dictionaries import choose_dictionaries, choose_dictionary
from jointwise.selection.prior import choose_strength

__all__ = ["choose_dictionaries", "choose_dictionary", "choose_strength"]
