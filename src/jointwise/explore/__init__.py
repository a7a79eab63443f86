"""The page on which one conditions with the mouse, the same thing in a notebook, and a small still picture.

- :func:`write_page`: one HTML file that holds the model and computes with it, without server or network
- :func:`widget`: the same, live in Jupyter and marimo; needs ``pip install 'jointwise[explore]'``
- :func:`picture`: the marginals as static HTML

The script and the style are built from ``web/`` and lie in ``bundle/``.
"""

from jointwise.explore.page import page, sampled, write_page
from jointwise.explore.picture import picture
from jointwise.explore.widget import widget

__all__ = ["page", "picture", "sampled", "widget", "write_page"]
