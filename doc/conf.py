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
]
root_doc = "index"
exclude_patterns = ["build"]
html_theme = "alabaster"
html_theme_options = {
    "description": f"Heat templates on a hash ring of conductors. Version {version}",
    "fixed_sidebar": True,
    "page_width": "1100px",
}
html_copy_source = False
pygments_style = "sphinx"
smartquotes = False
# Indented blocks are files, or commands with their answers.
highlight_language = "none"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]
