"""Choices by held-out likelihood: dictionaries from 1-D counts; rank and strength of the prior from rows."""

from jointwise.selection.dictionaries import choose_dictionaries, choose_dictionary, dictionary_options
from jointwise.selection.search import RANKS, STRENGTHS, Choice, choose_model, scores_from_dict, scores_to_dict

__all__ = [
    "RANKS",
    "STRENGTHS",
    "Choice",
    "choose_dictionaries",
    "choose_dictionary",
    "choose_model",
    "dictionary_options",
    "scores_from_dict",
    "scores_to_dict",
]
