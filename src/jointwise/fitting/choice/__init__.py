"""Choices by held-out likelihood: dictionaries from 1-D counts; number of components and beta from rows."""

from jointwise.fitting.choice.dictionaries import check_given, choose_dictionaries
from jointwise.fitting.choice.search import choose_model, short_fit, short_run

__all__ = ["check_given", "choose_dictionaries", "choose_model", "short_fit", "short_run"]
