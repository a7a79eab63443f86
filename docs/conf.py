"""How Sphinx makes the site: `make docs`."""

from __future__ import annotations

import os
import re
import sys
from importlib.metadata import version as version_of
from pathlib import Path

from sphinx.application import Sphinx

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.append(str(Path(__file__).parent / "_ext"))

project = "jointwise"
author = "The jointwise developers"
version = release = version_of("jointwise")
project_copyright = author

extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
templates_path = ["_templates"]
nitpicky = False

# Markdown: the pages are read on a code host too, so their links name files.
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Reference: docstrings in numpydoc's layout; a page a name.
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False
default_role = "code"
add_module_names = False
python_use_unqualified_type_names = True
toc_object_entries_show_parents = "hide"

# Gallery: `make docs GALLERY=quick` runs the scripts that need a second or two, and shows the text of the others.
QUICK = ("plot_xor", "plot_hand_written_dictionary", "plot_conditional_questions", "plot_hospitals")
quick = os.environ.get("GALLERY", "full") == "quick"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": rf"/({'|'.join(QUICK)})\.py$" if quick else r"/plot_",
    "ignore_pattern": r"demo\.py",
    "within_subsection_order": "gallery_order.StoryOrder",
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
    "matplotlib_animations": False,
    "write_computation_times": False,
    "capture_repr": ("_repr_html_",),
    "reference_url": {},
}

# Pages.
html_title = "jointwise"
html_context = {"default_mode": "auto"}
html_theme = "pydata_sphinx_theme"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"index": [], "gallery/**": ["sidebar-nav-bs"]}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "search_bar_text": "Search",
}


def hidden(_app: object, what: str, name: str, _obj: object, skip: bool, _options: object) -> bool | None:
    """Leave out what scikit-learn adds to every estimator: its own reference describes it."""
    common = {"get_metadata_routing", "learner", "set_output"}
    inherited = name in common or (name.startswith("set_") and name.endswith("_request"))
    return True if what == "class" and inherited else skip or None


def titled(_app: object, _page: str, source: list[str]) -> None:
    """Show the title of a page where a link shows the name of its file."""
    source[0] = re.sub(r"\[[\w-]+\.md\]\(", "[](", source[0])


def setup(app: Sphinx) -> None:
    """Connect what the settings above cannot say."""
    app.connect("source-read", titled)
    app.connect("autodoc-skip-member", hidden)
