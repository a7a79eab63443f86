"""Threads of the library that multiplies matrices."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController


def one_blas_thread() -> AbstractContextManager[None]:
    """Return a context in which products of matrices have one thread.

    Products in a fit are small: threads of their own would only wait for each other, and keep the cores from the fit's.
    """
    context: AbstractContextManager[None] = _libraries().limit(limits=1, user_api="blas")
    return context


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
