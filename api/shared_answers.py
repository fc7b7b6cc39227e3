"""Answers that requests share: many browsers that poll one answer cost the database no more than one browser.

A request accepts an answer from memory by the header ``Cache-Control: max-age=SECONDS``, as HTTP has it
(RFC 9111, 5.2.1.1).  Without it each request reads the database, as Heat's clients expect.

Callers have no say in how much is kept: no answer is kept of a request if its query
has a parameter that the operation does not know, or if it is longer than consoles need.
"""

import hashlib
import json
import re
import time
import typing
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..shapes import Json
from .authenticator import Authenticator, is_allowed
from .context import RequestContext
from .etags import has_latest
from .operations import Operation, Request
from .reply import Reply
from .shared_views import SharedViews

MOST_BYTES = 32 * 1024 * 1024
"""Bytes of the answers that are kept; the one not asked for longest goes first."""
KEY_LENGTH = 2048
"""Characters of a request, with its path and its query, whose answer is kept."""
IDLE = 10.0
"""Seconds after which an answer that nobody asks for is forgotten: consoles poll more often."""
_MAX_AGE = re.compile(r"max-age\s*=\s*([0-9]{1,6})")


class _Questions:
    """Implements Authenticator, and notes the questions of a handler and the answers."""

    def __init__(self, auth: Authenticator) -> None:
        self._auth = auth
        self.rules: dict[str, bool] = {}
        self.types: dict[str, bool] = {}

    def identify(self, project_id: str | None, headers: typing.Mapping[str, str]) -> RequestContext:
        """Return the authenticator's context; no handler asks for it."""
        return self._auth.identify(project_id, headers)

    def authorize(self, caller: RequestContext, rule: str) -> None:
        """Note whether the caller may do something, and check it."""
        self.rules[rule] = is_allowed(self._auth, caller, rule)
        if not self.rules[rule]:
            self._auth.authorize(caller, rule)

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        """Note and return whether the caller may have resources of a type."""
        self.types[type_name] = self._auth.may_use(caller, type_name)
        return self.types[type_name]

    def same_for(self, caller: RequestContext) -> bool:
        """Return whether all answers are the same for this caller."""
        rules = all(is_allowed(self._auth, caller, rule) == answer for rule, answer in self.rules.items())
        return rules and all(
            self._auth.may_use(caller, name) == answer for name, answer in self.types.items()
        )


@dataclass(frozen=True)
class _Answer:
    """An answer, and the questions about the policy on which it depends."""

    reply: Reply
    questions: _Questions

    @property
    def weight(self) -> int:
        """Return its bytes."""
        return len(self.reply.text or b"")


class SharedAnswers:
    """Keeps the latest answers of operations that are shared, for a second.  Thread-safe.

    The callers of one answer have the same project, and the policy allows them the same.

    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._answers: SharedViews[_Answer] = SharedViews(
            most=MOST_BYTES, weigh=lambda answer: answer.weight, idle=IDLE, monotonic=monotonic
        )

    def answer(self, request: Request, operation: Operation) -> Reply:
        """Return the answer to a request that has passed its policy rule.

        It may be one from memory, or 304, where the request accepts that.
        """
        age = _MAX_AGE.search(request.headers.get("CACHE-CONTROL", ""))
        if age is None:
            return operation.handler(request)
        answer = None
        if int(age[1]) > 0 and (key := _key(request, operation)) is not None:
            answer = self._answers.get(key, lambda before: _make(request, operation))
        if answer is None or not answer.questions.same_for(request.caller):
            answer = _make(request, operation)
        if has_latest(request.headers.get("IF-NONE-MATCH", ""), answer.reply.headers["ETag"]):
            return Reply(None, 304, answer.reply.headers)
        return answer.reply


def _make(request: Request, operation: Operation) -> _Answer:
    questions = _Questions(request.auth)
    return _Answer(_with_tag(operation.handler(replace(request, auth=questions))), questions)


def _key(request: Request, operation: Operation) -> tuple[Json, str] | None:
    """Return the key under which the answer is kept; None: it is not worth keeping."""
    if operation.shared is None or not request.query.keys() <= operation.shared:
        return None
    query = {name: list(values) for name, values in request.query.items()}
    caller = [request.caller.project_id, request.caller.everywhere]
    key = json.dumps([request.base_url, dict(request.path), query, caller], sort_keys=True)
    return (operation.handler, key) if len(key) <= KEY_LENGTH else None


def _with_tag(reply: Reply) -> Reply:
    """Return an answer with its text made, and the tag of that text."""
    text = reply.with_text().text or b""
    tag = f'"{hashlib.sha256(text).hexdigest()[:32]}"'
    headers = {**reply.headers, "ETag": tag, "Cache-Control": "private, no-cache"}
    return Reply(None, reply.status, headers, text)
