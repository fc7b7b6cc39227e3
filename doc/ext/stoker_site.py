"""Parts of the site: pictures in the reader's colours, pages of resource types, numbers in the search."""

import pathlib
import typing

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish
from sphinx.transforms import SphinxTransform
from stoker_types import write_pages

DARK = "-dark"
"""The end of the name, before the suffix, of the dark version of a picture."""
LEAST_DIGITS = 3
"""Shorter numbers are on nearly every page."""


class PicturesInBothSchemes(SphinxTransform):
    """Shows the picture ``NAME-dark.webp`` instead of ``NAME.webp`` to readers of the dark scheme.

    Documents name the light one, so a browser of the sources shows a picture, too.
    """

    default_priority = 400
    """Earlier than the images are collected."""

    def apply(self, **kwargs: typing.Any) -> None:
        for image in list(self.document.findall(nodes.image)):
            path = pathlib.PurePosixPath(image["uri"])
            uri = str(path.with_name(f"{path.stem}{DARK}{path.suffix}"))
            _, file = self.env.relfn2path(uri, self.env.docname)
            if "://" in image["uri"] or not pathlib.Path(file).is_file():
                continue
            dark = image.copy()
            dark["uri"] = uri
            image["classes"].append("only-light")
            dark["classes"].append("only-dark")
            image.parent.insert(image.parent.index(image) + 1, dark)


class SearchWithNumbers(SearchEnglish):
    """English, with numbers in the index: status codes and ports; `static/site.js` searches them."""

    def word_filter(self, word: str) -> bool:
        return (word.isdigit() and len(word) >= LEAST_DIGITS) or super().word_filter(word)


def _write_type_pages(app: Sphinx) -> None:
    write_pages(pathlib.Path(app.srcdir) / "reference" / "types")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register all at Sphinx."""
    app.add_search_language(SearchWithNumbers)
    app.add_transform(PicturesInBothSchemes)
    app.connect("builder-inited", _write_type_pages)
    return {"parallel_read_safe": True}
