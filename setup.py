"""The part of the package's metadata that is computed; setup.cfg has the rest."""

import configparser
import pathlib
import re

from setuptools import setup

ROOT = pathlib.Path(__file__).parent
_LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")
_PICTURE = re.compile(r'\b(src|srcset)="(?!https?:)([^"\s]+)"')


def source_url() -> str:
    """Return the address of the repository, as setup.cfg says it."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "setup.cfg")
    urls = dict(line.split(" = ") for line in parser["metadata"]["project_urls"].strip().splitlines())
    return urls["Source"]


def with_absolute_links(text: str, url: str) -> str:
    """Return a Markdown text for readers outside of the repository, with its pictures and links."""

    def absolute(link: re.Match[str]) -> str:
        picture, label, path = link.groups()
        return f"{picture}[{label}]({url}/{'raw' if picture else 'src'}/branch/main/{path})"

    return _PICTURE.sub(rf'\1="{url}/raw/branch/main/\2"', _LINK.sub(absolute, text))


setup(
    long_description=with_absolute_links((ROOT / "README.md").read_text(), source_url()),
    long_description_content_type="text/markdown",
)
