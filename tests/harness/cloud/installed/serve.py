"""Serves the WSGI application of an OpenStack service: serve.py SERVICE MODULE PORT REQUESTS [ARGUMENTS].

Run by the Python of the cloud's own virtual environment, without anything of Stoker's.  The file REQUESTS
gets a line for each request: method, path and query, status of the answer, project of who asks.
With the variable ONE_AT_A_TIME in the environment it answers one request after the other: SQLite does not
wait for a lock that two transactions need to end, and the services answer 500 then.
"""

import contextlib
import importlib
import io
import os
import sys
import threading

from cheroot import wsgi


def logged(application, path):
    """The application, whose requests are written down; any thread may call it."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def application_call(environ, start_response):
        request = f"{environ['REQUEST_METHOD']} {environ.get('REQUEST_URI') or environ['PATH_INFO']}"

        def started(status, *more):
            project = environ.get("HTTP_X_PROJECT_ID", "-")
            os.write(file, f"{request} {status.partition(' ')[0]} {project}\n".encode())
            return start_response(status, *more)

        return application(environ, started)

    return application_call


def alone(application):
    """The application, for one request at a time."""
    lock = threading.Lock()

    def application_call(environ, start_response):
        with lock, contextlib.ExitStack() as closed:
            parts = application(environ, start_response)
            closed.callback(getattr(parts, "close", lambda: None))
            return list(parts)

    return application_call


def unchunked(application):
    """The application, with the whole of each body that comes in chunks.

    Glance does not read the last chunk, which is empty.  Cheroot takes what is left of a body for the next
    request of the connection, and refuses it.
    """

    def application_call(environ, start_response):
        if environ.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked":
            body = environ["wsgi.input"].read()
            del environ["HTTP_TRANSFER_ENCODING"]
            environ |= {"wsgi.input": io.BytesIO(body), "CONTENT_LENGTH": str(len(body))}
        return application(environ, start_response)

    return application_call


if __name__ == "__main__":
    service, module, port, requests = sys.argv[1:5]
    sys.argv = [service, *sys.argv[5:]]  # The services read the command line themselves.
    application = logged(unchunked(importlib.import_module(module).application), requests)
    if "ONE_AT_A_TIME" in os.environ:
        application = alone(application)
    address = ("127.0.0.1", int(port))
    server = wsgi.Server(address, application, numthreads=8, request_queue_size=128, timeout=3600)
    # Clients that use a connection again just while it is closed for idleness fail.
    server.keep_alive_conn_limit = 1000
    server.start()
