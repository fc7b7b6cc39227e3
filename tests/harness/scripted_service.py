"""A service of a cloud that answers what a test has written down, over real HTTP."""

import dataclasses
import http.server
import json
import threading
import typing
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token

Json = typing.Any


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer.

    :ivar body: JSON, or text as it is.
    """

    status: int = 200
    body: Json = None
    headers: Mapping[str, str] = dataclasses.field(default_factory=dict)


NOT_FOUND = Answer(404, {"itemNotFound": {"message": "none", "code": 404}})


class ScriptedService:
    """The service.

    :ivar answers: answers by "METHOD path?query", or by "METHOD path" for any query; others get 404.
    :ivar requests: "METHOD path?query" of each request, in order.
    :ivar sent: bodies of these requests, of JSON or plain text; None: a request without one.
    :ivar accepted: media types that these requests accept.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.answers: dict[str, Answer] = {}
        self.requests: list[str] = []
        self.sent: list[Json] = []
        self.accepted: list[str | None] = []

    def adapter(self, service: str) -> Adapter:
        """Calls of it, as a service of this type."""
        return Adapter(Session(auth=Token(self.url, "token")), service_type=service)


@contextmanager
def serving() -> Iterator[ScriptedService]:
    """Serve until the end of the block."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def answer(self) -> None:
            request = f"{self.command} {self.path}"
            sent_body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            service.requests.append(request)
            decode = str if self.headers.get("Content-Type") == "text/plain" else json.loads
            service.sent.append(decode(sent_body.decode()) if sent_body else None)
            service.accepted.append(self.headers.get("Accept"))
            answer = service.answers.get(request) or service.answers.get(request.partition("?")[0], NOT_FOUND)
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            body = b"" if answer.body is None else text.encode()
            self.send_response(answer.status)
            kind = "text/html" if isinstance(answer.body, str) else "application/json"
            headers = {"Content-Type": kind, "x-openstack-request-id": "req-1", **answer.headers}
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer  # noqa: N815

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Be silent."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service = ScriptedService(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
