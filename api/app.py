"""The WSGI application: brings each request to its handler, and the reply, or an error, back.

Of a proxy's headers it reads the scheme only, and it sends none for CORS, which a proxy in front of the API
does.  So of oslo.middleware neither http_proxy_to_wsgi, which believes the host, too, nor cors is needed.

It logs and measures each request, knows those that run, and makes the request ids.  oslo.middleware's
request_id would make them in a wrapper around Falcon, where there is no route yet.  The id would come here by
the environment, and nothing would get simpler.
"""

import contextlib
import logging
import re
import threading
import time
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import falcon

from ..engine.signal_urls import SignalAddresses
from ..observe import metrics
from ..observe.logs import REQUEST, about
from ..observe.metrics import CONTENT_TYPE
from ..observe.recorder import SILENT, Recorder
from ..shapes import Json
from ..template.sandbox.evaluator import charged_to
from .bodies import read_body
from .ec2_signatures import SignedRequest, key_in_sight
from .errors import NO_SNIFFING, Fault, bad_request, fault_of, not_found
from .operations import Operation, Request, Routes, Services
from .origins import OriginGuard
from .pages import ROUTES as PAGES
from .pages import Pages
from .presigned import signed_by
from .reply import Reply, json_text
from .shared_answers import SharedAnswers
from .signed import MOST_UNKNOWN, SignedBodies, signed_request
from .strangers import NO_ATTEMPT, Attempt

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
UNROUTED = "none"
"""The route of unknown paths, which must not make series of their own."""
QUIET = ("/healthcheck", "/metrics", "/", *PAGES)
"""Routes that are polled, and are not worth a line of the log."""
_PLAIN = re.compile(r"[\w.:-]{1,255}")


@dataclass(frozen=True)
class RequestRecord:
    """A request that runs.

    :ivar began: the start of the request, in seconds of the monotonic clock.
    :ivar thread: the id of the thread that answers the request.
    """

    id: str
    method: str
    began: float
    thread: int
    route: str = UNROUTED


class RequestLog:
    """A middleware of Falcon's.  Thread-safe.

    :param monotonic: a clock whose seconds never jump.
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
        project = params.get("tenant_id")
        stack = params.get("stack_id") or params.get("stack_name")
        req.context.lines.enter_context(about(project=_plain(project), stack=_plain(stack)))

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, req_succeeded: bool
    ) -> None:
        """Log and measure a request that is answered."""
        watched: RequestRecord = req.context.watched
        seconds = self._monotonic() - watched.began
        status = str(resp.status_code)
        self._running.pop(watched.id, None)
        self._recorder.add(metrics.REQUESTS, watched.route, watched.method, status)
        self._recorder.observe(metrics.REQUEST, watched.route, watched.method, value=seconds)
        level = logging.DEBUG if watched.route in QUIET else logging.INFO
        LOG.log(level, "%s %s %s %.3f s", watched.method, watched.route, status, seconds)
        resp.set_header(*NO_SNIFFING)
        req.context.lines.close()


def request_id(req: falcon.Request) -> str:
    """Return the id of a request in the log and in the answer."""
    watched: typing.Any = req.context.watched
    return str(watched.id)


def _plain(value: str | None) -> str | None:
    """Return a value if a line of the log may hold it: a path can spell anything, also the end of a line."""
    return value if value and _PLAIN.fullmatch(value) else None


LOG = logging.getLogger(__name__)
TENANT_LENGTH = 64
METRICS = "/metrics"
IDENTIFIER = "X-Openstack-Request-Id"
NAMED = "/v1/{tenant_id}/stacks/{stack_name}"
"""The path of a stack without its id, whose operation redirects to the full path."""
ARN_PATH = re.compile(r"/v1/(?P<tenant_id>[^/]+)/stacks/(?P<stack_name>arn:.*)", re.DOTALL)
"""The path of a stack by its ARN, which has slashes; the path below the stack is part of it."""
BELOW_A_NAME = ("resources", "events", "template", "environment", "files", "outputs", "actions")
"""Path segments that may follow a stack's bare name in the place of its id: such a request is redirected."""


@dataclass(frozen=True)
class _Api:
    """The collaborators of every responder.

    :ivar lookup: redirects from a stack's name to its full path.
    """

    services: Services
    addresses: SignalAddresses
    lookup: Operation
    answers: SharedAnswers
    bodies: SignedBodies


def make_app(
    services: Services,
    routes: Routes,
    addresses: SignalAddresses,
    *,
    log: RequestLog | None = None,
    pages: Pages | None = None,
    guard: OriginGuard | None = None,
) -> falcon.App[falcon.Request, falcon.Response]:
    """Return the application: every answer, also an error, is JSON in Heat's shape with a request id.

    :param addresses: the check of the signatures of addresses.
    :param log: the counter and log of requests; None: no request is counted or logged.
    :param pages: the console for browsers; None: no console is served.
    :param guard: the check of browsers' origins; None: tokens protect the API.
    """
    app = falcon.App(middleware=[log or RequestLog(SILENT)])
    if guard is not None:
        app.add_middleware(guard)
    app.req_options.strip_url_path_trailing_slash = True
    app.req_options.auto_parse_qs_csv = False
    app.req_options.keep_blank_qs_values = True
    lookup = routes[NAMED]["GET"]
    api = _Api(services, addresses, lookup, SharedAnswers(), SignedBodies())
    for path, operations in routes.items():
        app.add_route(path, _resource(api, operations))
    if pages is not None:
        pages.add_to(app)
    if services.metrics is not None:
        app.add_route(METRICS, _Metrics(services.metrics))
    app.add_error_handler(Exception, _on_error)
    app.add_error_handler(falcon.HTTPError, _on_error)  # Or Falcon's own, for the more special class.
    app.add_sink(_unknown_path, "/")
    # The ARN of a stack leads to it as its name does, with every method.
    app.add_sink(_responder(api, dict.fromkeys(METHODS, lookup)), ARN_PATH)
    return app


class _Metrics:
    """The page that Prometheus reads."""

    def __init__(self, text: Callable[[], bytes]) -> None:
        self._text = text

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.data = self._text()
        resp.content_type = CONTENT_TYPE


def _resource(api: _Api, operations: Mapping[str, Operation]) -> object:
    """Return an object with a responder for each method, as Falcon expects it."""
    respond = staticmethod(_responder(api, operations))
    return type("Resource", (), {f"on_{method.lower()}": respond for method in METHODS})()


def _responder(api: _Api, operations: Mapping[str, Operation]) -> Callable[..., None]:
    """Return the responder of a route."""
    allowed = ", ".join(sorted(operations))

    def respond(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        operation = operations.get(req.method)
        variables = path
        if path.get("stack_id") in BELOW_A_NAME and "stack_name" in path:
            # ``/stacks/NAME/resources`` looks like a stack's id that is "resources".
            operation = api.lookup
            variables = {**path, "below": path["stack_id"]}
        if operation is not None:
            reply = _perform(api, operation, req, variables)
        elif req.method == "OPTIONS":
            reply = Reply(None, 204, {"Allow": allowed})
        else:
            resp.set_header("Allow", allowed)
            raise Fault(405, "HTTPMethodNotAllowed", f"{req.method} is not allowed here; allowed: {allowed}")
        resp.status = reply.status
        for name, value in reply.headers.items():
            resp.set_header(name, value)
        if reply.text is not None:
            resp.data = reply.text
            resp.content_type = reply.content_type
        resp.set_header(IDENTIFIER, request_id(req))

    return respond


def _perform(api: _Api, operation: Operation, req: falcon.Request, path: Mapping[str, str]) -> Reply:
    services = api.services
    query = {name: value if isinstance(value, list) else [value] for name, value in req.params.items()}
    _check_address(path, query)
    if operation.presigned:
        caller = signed_by(api.addresses, path, query, req.headers, operation.presigned)
    else:
        project_id = None if operation.everywhere else path.get("tenant_id", "")
        caller = services.auth.identify(project_id, req.headers)
    req.context.caller = caller
    with _attempt(services, operation, req) as attempt, _body(api, operation, req, query) as (body, signed):
        if not operation.signed:  # The signer of the others is known to their handler only.
            services.count_request(caller.project_id)
        if operation.rule is not None:
            services.auth.authorize(caller, operation.rule)
        request = Request(
            services=services,
            caller=caller,
            auth=services.auth,
            limits=services.limits,
            path=path,
            query=query,
            body=body,
            base_url=_base_url(req),
            query_string=req.query_string,
            cloud=None if caller.access is None else services.cloud(caller.access),
            method=req.method,
            headers=req.headers,
            signed=signed,
            request_id=request_id(req),
            downloads=services.downloads,
            attempt=attempt,
        )
        with charged_to(caller.project_id):
            is_shared = operation.shared is not None and "CACHE-CONTROL" in req.headers
            reply = api.answers.answer(request, operation) if is_shared else operation.handler(request)
            if reply.status >= 500:
                attempt.excuse()
            return reply.with_text()


def _attempt(
    services: Services, operation: Operation, req: falcon.Request
) -> contextlib.AbstractContextManager[Attempt]:
    """Return the attempt of a request whose signer is not known yet; the sender of the others is."""
    if not operation.signed:
        return contextlib.nullcontext(NO_ATTEMPT)
    return services.strangers.attempt(req.remote_addr, req.get_header("X-Forwarded-For") or "")


@contextlib.contextmanager
def _body(
    api: _Api, operation: Operation, req: falcon.Request, query: Mapping[str, Sequence[str]]
) -> Iterator[tuple[Json, SignedRequest | None]]:
    """Yield the parsed body of a request, or the signed request as it was sent."""
    services = api.services
    most = services.limits.body_bytes
    if not operation.signed:
        yield read_body(req, most, any_type=bool(operation.presigned)), None
        return
    with api.bodies.body(req, query, most if operation.templates else min(most, MOST_UNKNOWN)) as raw:
        key = key_in_sight(query, req.get_header("Authorization") or "", raw[:MOST_UNKNOWN])
        if key is not None:
            services.count_key(key)
        yield None, signed_request(req.method, _sent_path(req), query, req.headers, raw)


def _base_url(req: falcon.Request) -> str:
    """Return the address under which the client reaches the API.

    A proxy that ends TLS says so in `X-Forwarded-Proto`, or in `Forwarded`.  No other scheme is believed, and
    the host is that of `Host`.
    """
    scheme = "https" if req.forwarded_scheme == "https" else req.scheme
    return f"{scheme}://{req.netloc}{req.root_path}"


def _sent_path(req: falcon.Request) -> str:
    """Return the decoded path that the client has sent, with a slash at its end: clients sign it."""
    sent = req.env.get("SCRIPT_NAME", "") + req.env.get("PATH_INFO", "")
    return str(sent).encode("latin-1").decode("utf-8", errors="replace")


def _check_address(path: Mapping[str, str], query: Mapping[str, Sequence[str]]) -> None:
    """Refuse names that some databases refuse with an error: nothing that is stored has such a name."""
    for name, value in path.items():
        if not value or "\0" in value:
            raise not_found(name, value.replace("\0", "\\x00"))
    for name, values in query.items():
        if any("\0" in value for value in (name, *values)):
            raise bad_request("A parameter of the query must not hold a NUL character")
    if len(path.get("tenant_id", "")) > TENANT_LENGTH:
        raise bad_request(f"A project's id has {TENANT_LENGTH} characters or less")


def _on_error(req: falcon.Request, resp: falcon.Response, error: Exception, params: Json) -> None:
    """Answer an error; the top of the WSGI stack."""
    identifier = request_id(req)
    resp.set_header(IDENTIFIER, identifier)
    fault = fault_of(error)
    if fault is None and isinstance(error, falcon.HTTPError):
        resp.set_headers(error.headers or {})
        fault = Fault(error.status_code, type(error).__name__, error.description or error.title or "")
    if fault is None:
        LOG.error("%s %s %r failed", identifier, req.method, req.path, exc_info=error)
        fault = Fault(500, "InternalError", f"Stoker met an error that it did not expect; see {identifier}")
    resp.set_headers(fault.headers)
    resp.status = fault.status
    resp.data = json_text(fault.body())
    resp.content_type = "application/json"


def _unknown_path(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
    raise not_found("path", req.path)
