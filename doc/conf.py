"""Configuration of Sphinx, which ``make docs`` runs."""

import importlib.metadata
import pathlib
import sys

from stoker.cli.daemon import threading_backend  # noqa: F401  - before oslo, which the extensions import

DOC = pathlib.Path(__file__).parent
# The tests say how each resource type is tested, and compare it with Heat's.
sys.path[:0] = [str(DOC / "ext"), str(DOC.parent / "tests")]

project = "Stoker"
author = "the Stoker developers"
copyright = author  # noqa: A001 - Sphinx calls it so
release = version = importlib.metadata.version("stoker")

extensions = [
    "myst_parser",
    "oslo_config.sphinxext",
    "oslo_policy.sphinxext",
    "stoker_reference",
    "stoker_types",
    "stoker_site",
]
root_doc = "index"
exclude_patterns = ["build"]
templates_path = ["ext/templates"]
html_theme = "furo"
html_title = "Stoker"
html_favicon = html_logo = "../console/page/icon.svg"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fae", "color-brand-content": "#1f5fae"},
    "dark_css_variables": {"color-brand-primary": "#6fb0ff", "color-brand-content": "#6fb0ff"},
}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "version.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
html_static_path = ["ext/static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_copy_source = False
# Those of the theme come from a package that configures the log of whoever imports it.
pygments_style = "friendly"
pygments_dark_style = "github-dark"
smartquotes = False
# Indented blocks are files, or commands with their answers.
highlight_language = "none"
myst_heading_anchors = 4
# The second gives the doors of the front page their class.
myst_enable_extensions = ["colon_fence", "attrs_block"]
