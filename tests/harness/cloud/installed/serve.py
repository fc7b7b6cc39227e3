"""Serves the WSGI application of an OpenStack service: serve.py SERVICE MODULE PORT [ITS ARGUMENTS].

Run by the Python of the cloud's own virtual environment, without anything of Stoker's.
"""

import importlib
import sys

from cheroot import wsgi

if __name__ == "__main__":
    service, module, port = sys.argv[1:4]
    sys.argv = [service, *sys.argv[4:]]  # The services read the command line themselves.
    application = importlib.import_module(module).application
    address = ("127.0.0.1", int(port))
    wsgi.Server(address, application, numthreads=8, request_queue_size=128).start()
