"""The handler of the API's own description."""

import functools
import hashlib
import json
from collections.abc import Callable, Iterable

from ..etags import has_latest
from ..openapi import describe
from ..operations import Request, Routes
from ..policy import Rule
from ..reply import Reply


class ApiDescription:
    """Answers with the description of all routes, which is made once.  Thread-safe.

    :param routes: a function that returns the routes, among which this one is.
    :param rules: the policy's rules.
    """

    def __init__(self, routes: Callable[[], Routes], rules: Iterable[Rule]) -> None:
        self._routes = routes
        self._rules = rules

    @functools.cached_property
    def _text(self) -> bytes:
        """Return the description as JSON, without its first brace."""
        return json.dumps(describe(self._routes(), self._rules)).encode("ascii")[1:]

    def show(self, request: Request) -> Reply:
        """Answer GET /v1/openapi.json; 304 if the client has it."""
        servers = json.dumps([{"url": request.base_url}]).encode("ascii")
        text = b'{"servers": %s, %s' % (servers, self._text)
        headers = {
            "ETag": f'"{hashlib.sha256(text).hexdigest()[:32]}"',
            "Cache-Control": "public, max-age=300",
        }
        if has_latest(request.headers.get("IF-NONE-MATCH", ""), headers["ETag"]):
            return Reply(None, 304, headers)
        return Reply(None, 200, headers, text=text)
