"""Logs and measures each request, and knows those that run.

It makes the request ids, too.  oslo.middleware's request_id would make them in a wrapper around Falcon, where
there is no route yet; the id would come here by the environment, and nothing would get simpler.
"""

import contextlib
import logging
import re
import threading
import time
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import falcon

from ..observe import metrics
from ..observe.logs import REQUEST, about
from ..observe.recorder import Recorder

LOG = logging.getLogger(__name__)
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
UNROUTED = "none"
"""The route of unknown paths, which must not make series of their own."""
QUIET = ("/healthcheck", "/metrics", "/")
"""Routes that are polled, and are not worth a line of the log."""
_PLAIN = re.compile(r"[\w.:-]{1,255}")


@dataclass(frozen=True)
class RequestRecord:
    """A request that runs.

    :ivar began: in seconds of the monotonic clock.
    :ivar thread: that answers it.
    """

    id: str
    method: str
    began: float
    thread: int
    route: str = UNROUTED


class RequestLog:
    """A middleware of Falcon's.  Thread-safe.

    :param monotonic: seconds that never jump.
    """

    def __init__(self, recorder: Recorder, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._recorder = recorder
        self._monotonic = monotonic
        self._running: dict[str, RequestRecord] = {}

    def running(self) -> Sequence[tuple[RequestRecord, float]]:
        """Return the requests that are not answered yet, and their age in seconds."""
        now = self._monotonic()
        return [(request, now - request.began) for request in list(self._running.values())]

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Register a request that has come."""
        method = req.method if req.method in METHODS else "other"
        request = RequestRecord(f"{REQUEST}{uuid.uuid4()}", method, self._monotonic(), threading.get_ident())
        req.context.watched = self._running[request.id] = request
        req.context.lines = contextlib.ExitStack()
        req.context.lines.enter_context(about(request=request.id))

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, resource: object, params: Mapping[str, str]
    ) -> None:
        """Note the route of a request."""
        watched: RequestRecord = req.context.watched
        route = req.uri_template or UNROUTED
        self._running[watched.id] = req.context.watched = RequestRecord(
            watched.id, watched.method, watched.began, watched.thread, route
        )
        project, stack = params.get("tenant_id"), params.get("stack_id") or params.get("stack_name")
        req.context.lines.enter_context(about(project=_plain(project), stack=_plain(stack)))

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Log and measure a request that is answered."""
        watched: RequestRecord = req.context.watched
        seconds, status = self._monotonic() - watched.began, str(resp.status_code)
        self._running.pop(watched.id, None)
        self._recorder.add(metrics.REQUESTS, watched.route, watched.method, status)
        self._recorder.observe(metrics.REQUEST, watched.route, watched.method, value=seconds)
        level = logging.DEBUG if watched.route in QUIET else logging.INFO
        LOG.log(level, "%s %s %s %.3f s", watched.method, watched.route, status, seconds)
        req.context.lines.close()


def request_id(req: falcon.Request) -> str:
    """Return the id of a request in the log and in the answer."""
    watched: typing.Any = req.context.watched
    return str(watched.id)


def _plain(value: str | None) -> str | None:
    """Return a value if a line of the log may hold it: a path can spell anything, also the end of a line."""
    return value if value and _PLAIN.fullmatch(value) else None
