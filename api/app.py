"""The WSGI application."""

import json
import logging
import typing
import uuid
from collections.abc import Callable, Mapping

import falcon

from .call import Call, Operation, Reply
from .faults import Fault, bad_request, fault_of, not_found
from .routes import BELOW_A_NAME, LOOKUP, ROUTES
from .services import Services

LOG = logging.getLogger(__name__)
Json = typing.Any
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")


def make_app(services: Services) -> falcon.App[falcon.Request, falcon.Response]:
    """The application: every answer, also an error, is JSON in Heat's shape with a request id."""
    app = falcon.App()
    app.req_options.strip_url_path_trailing_slash = True
    app.req_options.auto_parse_qs_csv = False
    app.req_options.keep_blank_qs_values = True
    for path, operations in ROUTES.items():
        app.add_route(path, _resource(services, operations))
    app.add_error_handler(Exception, _on_error)
    app.add_sink(_unknown_path, "/")
    return app


def _resource(services: Services, operations: Mapping[str, Operation]) -> object:
    """An object with a responder for each method, as Falcon wants it."""
    responders = {f"on_{method.lower()}": _responder(services, op) for method, op in operations.items()}
    allowed = ", ".join(sorted(operations))

    def refuse(self: object, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        resp.set_header("Allow", allowed)
        raise Fault(405, "HTTPMethodNotAllowed", f"{req.method} is not allowed here; allowed: {allowed}")

    for method in METHODS:
        responders.setdefault(f"on_{method.lower()}", refuse)
    return type("Resource", (), responders)()


def _responder(services: Services, operation: Operation) -> Callable[..., None]:
    def respond(self: object, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        chosen, variables = _redirected(operation, path)
        _answer(resp, _perform(services, chosen, req, variables))

    return respond


def _redirected(operation: Operation, path: Mapping[str, str]) -> tuple[Operation, Mapping[str, str]]:
    """``/stacks/NAME/resources`` looks like a stack's id that is "resources"."""
    if path.get("stack_id") in BELOW_A_NAME and "stack_name" in path:
        return LOOKUP, {**path, "below": path["stack_id"]}
    return operation, path


def _perform(services: Services, operation: Operation, req: falcon.Request, path: Mapping[str, str]) -> Reply:
    tenant = path.get("tenant_id", "")
    caller = services.auth.identify(tenant, req.headers)
    if operation.rule is not None:
        services.auth.authorize(caller, operation.rule)
    call = Call(
        services=services,
        caller=caller,
        path=path,
        query={name: value if isinstance(value, list) else [value] for name, value in req.params.items()},
        body=_body(req, services.limits.body_bytes),
        base_url=req.prefix,
        query_string=req.query_string,
    )
    return operation.handler(call)


def _body(req: falcon.Request, most: int) -> Json:
    if req.method not in ("POST", "PUT", "PATCH"):
        return None
    length = req.content_length
    if length is not None and length > most:
        raise Fault(413, "RequestLimitExceeded", f"The body has {length} bytes, above the limit of {most}")
    raw = req.bounded_stream.read(most + 1)
    if len(raw) > most:
        raise Fault(413, "RequestLimitExceeded", f"The body is above the limit of {most} bytes")
    if not raw.strip():
        return None
    kind = (req.content_type or "application/json").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Fault(415, "HTTPUnsupportedMediaType", f"The body must be application/json, not {kind}")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"JSON body malformed: {error}") from error


def _answer(resp: falcon.Response, reply: Reply) -> None:
    resp.status = reply.status
    for name, value in reply.headers.items():
        resp.set_header(name, value)
    if reply.body is not None:
        resp.media = reply.body
    _identify(resp)


def _identify(resp: falcon.Response) -> str:
    request_id = f"req-{uuid.uuid4()}"
    resp.set_header("X-Openstack-Request-Id", request_id)
    return request_id


def _on_error(req: falcon.Request, resp: falcon.Response, error: Exception, params: Json) -> None:
    """Top of the WSGI stack."""
    request_id = _identify(resp)
    fault = fault_of(error)
    if fault is None and isinstance(error, falcon.HTTPError):
        fault = Fault(error.status_code, type(error).__name__, error.description or error.title or "")
    if fault is None:
        LOG.error("%s %s %s broke", request_id, req.method, req.path, exc_info=error)
        fault = Fault(500, "InternalError", f"Stoker met an error that it did not expect; see {request_id}")
    resp.status = fault.status
    resp.media = fault.body()


def _unknown_path(req: falcon.Request, resp: falcon.Response, **path: str) -> None:
    raise not_found("path", req.path)
