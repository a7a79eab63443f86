"""Names and values as they are shown to a person: short, and without characters that hide or turn the text."""

from __future__ import annotations

from unicodedata import category

# Kinds of characters that are written as escapes: controls, those that turn or hide text, halves of surrogate pairs.
_HIDDEN = frozenset({"Cc", "Cf", "Cs"})
# Joiners of letters and of pictures, without which some scripts cannot be written.
_JOINERS = frozenset("\u200c\u200d")


def visible(words: object, longest: int) -> str:
    r"""Return words as text of at most ``longest`` characters, with control characters and marks of direction escaped.

    >>> visible("a\tb\u202ec", 20), visible("x" * 30, 5)
    ('a\\tb\\u202ec', 'xxxx…')
    """
    plain = str(words)
    short = plain if len(plain) <= longest else plain[: max(longest - 1, 0)] + "…"
    if short.isprintable():
        return short
    shown = "".join(
        c.encode("unicode_escape").decode() if category(c) in _HIDDEN and c not in _JOINERS else c for c in short
    )
    return shown if len(shown) <= 2 * longest else shown[: 2 * longest - 1] + "…"
