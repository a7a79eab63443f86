"""The command `jointwise`: fit a table of a file, then ask, draw, score, fill, classify and plot, from the shell.

`files` opens tables and `outputs` writes them, `cells` tells numbers from text, `language` is the grammar of questions
and `answers` their answers; `commands`, `rows` and `showcase` are the commands themselves, gathered by `app`.
"""

from __future__ import annotations

import sys

from jointwise.exceptions import MissingDependencyError

__all__ = ["main"]


def main() -> None:
    """Run the command; without its packages, say how to get them."""
    try:
        from jointwise.cli.app import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in {"typer", "rich"}:
            raise
        missing = MissingDependencyError(
            f"The command jointwise needs {error.name}, which is not installed: pip install 'jointwise[cli]'"
        )
        sys.exit(f"Error: {missing}")
    app()
