"""A proxy before a server that can keep back the answers to some requests."""

import http.server
import threading
import typing

import requests
from harness.ports import HOST

_PASSED_ON = ("X-Auth-Token", "X-Subject-Token", "Content-Type", "Accept")


class HoldingProxy:
    """Passes requests on; the answer to a POST on `held` is kept back forever once `holds` is set.

    :ivar answered: the server has answered a request whose answer is kept back.
    """

    def __init__(self, target: str, held: str) -> None:
        self.holds = threading.Event()
        self.answered = threading.Event()
        self._over = threading.Event()
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name: self.headers[name] for name in _PASSED_ON if self.headers[name]}
                response = requests.request(
                    self.command, target + self.path, data=body, headers=headers, timeout=120
                )
                if proxy.holds.is_set() and self.command == "POST" and self.path.endswith(held):
                    proxy.answered.set()
                    proxy._over.wait()
                    self.close_connection = True
                    return
                self.send_response(response.status_code)
                for name in ("X-Subject-Token", "Content-Type", "Location"):
                    if name in response.headers:
                        self.send_header(name, response.headers[name])
                self.send_header("Content-Length", str(len(response.content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(response.content)

            def log_message(self, *args: typing.Any) -> None:
                """It says nothing."""

        for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"):
            setattr(Handler, f"do_{method}", Handler._pass_on)
        self._server = http.server.ThreadingHTTPServer((HOST, 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://{HOST}:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        """Drop the answers that are kept back."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
