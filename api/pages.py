"""Pages for browsers that an application may serve next to the API."""

import typing

import falcon

PATH = "/console"
FILE = f"{PATH}/{{name}}"
ROUTES = (PATH, FILE)
"""The routes of the files, which are worth no line of the log."""


class Pages(typing.Protocol):
    """Pages that add their routes to an application."""

    def add_to(self, app: falcon.App[falcon.Request, falcon.Response]) -> None:
        """Add the routes of the pages."""
