"""The reply to a request, and the links in it."""

import io
import itertools
import json
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import orjson

from ..db.rows import ListedStack
from ..shapes import Json
from .request import HttpRequest

_UNRESERVED = re.compile(r"[A-Za-z0-9_.~-]*")
"""Texts that quoting does not change; it takes ten times as long to find that out."""
PART = 200
"""Entries of a list that are made at a time."""


@dataclass(frozen=True)
class Reply:
    """An answer to a request.

    :ivar body: JSON; None: no body, and with 200 the JSON ``null``.
    :ivar text: sent in place of the body, as `content_type`; None: the body is sent.
    """

    body: Json = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    text: bytes | None = None
    content_type: str = "application/json"

    def with_text(self) -> "Reply":
        """Return the reply with its body made into text."""
        # Heat's client warns of an answer 200 without JSON.
        if self.text is not None or (self.body is None and self.status != 200):
            return self
        return Reply(None, self.status, self.headers, json_text(self.body))


ACCEPTED = Reply({"code": "202 Accepted", "title": "Accepted", "message": "The request is accepted."}, 202)
"""The answer to a request that is carried out later.  It is an object, as in Heat: openstacksdk, and with it
Ansible, expect the stack in this body and fail on ``null``."""


def json_text(body: Json) -> bytes:
    """Return JSON as text.

    orjson takes a tenth of the time of Python's encoder.  It refuses values that the other one takes: halves
    of surrogate pairs, integers of more than 64 bits, keys that are no texts.
    """
    try:
        return orjson.dumps(body)
    except orjson.JSONEncodeError:
        # As ASCII: stored texts may hold characters that UTF-8 cannot encode.
        return json.dumps(body).encode("ascii")


def listing(name: str, views: Iterable[Json]) -> Reply:
    """Return a reply whose body is an object with one list.

    Its text is made part by part, in one place: of a list of ten thousand never all views are in memory.

    :param views: the entries of the list.
    """
    entries = iter(views)
    text = io.BytesIO()
    text.write(b'{"%b":[' % name.encode())
    comma = b""
    while part := list(itertools.islice(entries, PART)):
        text.write(comma)
        text.write(json_text(part)[1:-1])
        comma = b","
    text.write(b"]}")
    return Reply(text=text.getvalue())


def quoted(part: str) -> str:
    """Return a text as one segment of a path."""
    return part if _UNRESERVED.fullmatch(part) else urllib.parse.quote(part, safe="")


def stack_url(request: HttpRequest, stack: ListedStack, *more: str) -> str:
    """Return the URL of a stack, or of something below it."""
    return url_of(request, stack.project_id, stack.name, stack.id, *more)


def url_of(request: HttpRequest, project_id: str, name: str, stack_id: str, *more: str) -> str:
    """Return the URL of a stack by its name and id, or of something below it."""
    parts = ("v1", project_id, "stacks", name, stack_id, *more)
    return "/".join([request.base_url, *[quoted(part) for part in parts]])


def link(url: str, rel: str = "self") -> dict[str, str]:
    """Return a link."""
    return {"href": url, "rel": rel}
