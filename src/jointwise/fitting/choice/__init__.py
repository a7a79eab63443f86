"""Choices by held-out likelihood: dictionaries from 1-D counts; rank and strength of the prior from rows."""

from jointwise.fitting.choice.dictionaries import choose_dictionaries, choose_dictionary, dictionary_options
from jointwise.fitting.choice.search import (
    RANKS,
    SEARCH_ROWS,
    STRENGTHS,
    Choice,
    choose_model,
    fold_weights,
    scores_from_dict,
    scores_to_dict,
    short_fit,
    short_run,
)

__all__ = [
    "RANKS",
    "SEARCH_ROWS",
    "STRENGTHS",
    "Choice",
    "choose_dictionaries",
    "choose_dictionary",
    "choose_model",
    "dictionary_options",
    "fold_weights",
    "scores_from_dict",
    "scores_to_dict",
    "short_fit",
    "short_run",
]
