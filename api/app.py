"""The WSGI application."""

import json
import logging
import typing
from collections.abc import Callable, Mapping, Sequence

import falcon

from ..observe.metrics import CONTENT_TYPE
from ..observe.recorder import SILENT
from ..sandbox.evaluator import charged_to
from .body import read_body
from .context import Services
from .errors import Fault, bad_request, fault_of, not_found
from .handlers.signals import signed_by
from .request import Operation, Reply, Request
from .request_log import METHODS, RequestLog, request_id
from .routes import BELOW_A_NAME, LOOKUP, ROUTES

LOG = logging.getLogger(__name__)
Json = typing.Any
TENANT_LENGTH = 64
FIGURES = "/metrics"
IDENTIFIER = "X-Openstack-Request-Id"


def make_app(services: Services) -> falcon.App[falcon.Request, falcon.Response]:
    """The application: every answer, also an error, is JSON in Heat's shape with a request id."""
    app = falcon.App(middleware=[services.watch or RequestLog(SILENT)])
    app.req_options.strip_url_path_trailing_slash = True
    app.req_options.auto_parse_qs_csv = False
    app.req_options.keep_blank_qs_values = True
    for path, operations in ROUTES.items():
        app.add_route(path, _resource(services, operations))
    if services.figures is not None:
        app.add_route(FIGURES, _Figures(services.figures))
    app.add_error_handler(Exception, _on_error)
    app.add_error_handler(falcon.HTTPError, _on_error)  # Or Falcon's own, for the more special class.
    app.add_sink(_unknown_path, "/")
    return app


class _Figures:
    """What Prometheus reads."""

    def __init__(self, text: Callable[[], bytes]) -> None:
        self._text = text

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.data, resp.content_type = self._text(), CONTENT_TYPE


def _resource(services: Services, operations: Mapping[str, Operation]) -> object:
    """An object with a responder for each method, as Falcon wants it."""
    responders = {f"on_{method.lower()}": _responder(services, op) for method, op in operations.items()}
    allowed = ", ".join(sorted(operations))

    def refuse(self: object, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        chosen, variables = _redirected(None, path)
        if chosen is not None:
            return _answer(req, resp, _perform(services, chosen, req, variables))
        resp.set_header("Allow", allowed)
        if req.method == "OPTIONS":
            return _answer(req, resp, Reply(None, 204))
        raise Fault(405, "HTTPMethodNotAllowed", f"{req.method} is not allowed here; allowed: {allowed}")

    for method in METHODS:
        responders.setdefault(f"on_{method.lower()}", refuse)
    return type("Resource", (), responders)()


def _responder(services: Services, operation: Operation) -> Callable[..., None]:
    def respond(self: object, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        chosen, variables = _redirected(operation, path)
        _answer(req, resp, _perform(services, chosen or operation, req, variables))

    return respond


def _redirected(
    operation: Operation | None, path: Mapping[str, str]
) -> tuple[Operation | None, Mapping[str, str]]:
    """``/stacks/NAME/resources`` looks like a stack's id that is "resources"."""
    if path.get("stack_id") in BELOW_A_NAME and "stack_name" in path:
        return LOOKUP, {**path, "below": path["stack_id"]}
    return operation, path


def _perform(services: Services, operation: Operation, req: falcon.Request, path: Mapping[str, str]) -> Reply:
    query = {name: value if isinstance(value, list) else [value] for name, value in req.params.items()}
    _check_address(path, query)
    if operation.presigned:
        caller = signed_by(services.addresses, path, query, req.headers)
    else:
        caller = services.auth.identify(path.get("tenant_id", ""), req.headers)
    if operation.rule is not None:
        services.auth.authorize(caller, operation.rule)
    call = Request(
        services=services,
        caller=caller,
        path=path,
        query=query,
        body=read_body(req, services.limits.body_bytes, any_type=operation.presigned),
        base_url=req.prefix,
        query_string=req.query_string,
    )
    with charged_to(caller.tenant):
        return operation.handler(call)


def _check_address(path: Mapping[str, str], query: Mapping[str, Sequence[str]]) -> None:
    """Refuse what some databases refuse with an error: nothing that is stored has such a name."""
    for name, value in path.items():
        if not value or "\0" in value:
            raise not_found(name, value.replace("\0", "\\x00"))
    for name, values in query.items():
        if any("\0" in value for value in (name, *values)):
            raise bad_request("A parameter of the query must not hold a NUL character")
    if len(path.get("tenant_id", "")) > TENANT_LENGTH:
        raise bad_request(f"A tenant's id has {TENANT_LENGTH} characters or less")


def _answer(req: falcon.Request, resp: falcon.Response, reply: Reply) -> None:
    resp.status = reply.status
    for name, value in reply.headers.items():
        resp.set_header(name, value)
    if reply.body is not None or reply.status == 200:  # Heat's client warns of one without JSON.
        _write(resp, reply.body)
    resp.set_header(IDENTIFIER, request_id(req))


def _write(resp: falcon.Response, body: Json) -> None:
    # As ASCII: what is stored may hold characters that UTF-8 does not know.
    resp.data = json.dumps(body).encode("ascii")
    resp.content_type = "application/json"


def _on_error(req: falcon.Request, resp: falcon.Response, error: Exception, params: Json) -> None:
    """Top of the WSGI stack."""
    identifier = request_id(req)
    resp.set_header(IDENTIFIER, identifier)
    fault = fault_of(error)
    if fault is None and isinstance(error, falcon.HTTPError):
        resp.set_headers(error.headers or {})
        fault = Fault(error.status_code, type(error).__name__, error.description or error.title or "")
    if fault is None:
        LOG.error("%s %s %r broke", identifier, req.method, req.path, exc_info=error)
        fault = Fault(500, "InternalError", f"Stoker met an error that it did not expect; see {identifier}")
    resp.status = fault.status
    _write(resp, fault.body())


def _unknown_path(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
    raise not_found("path", req.path)
