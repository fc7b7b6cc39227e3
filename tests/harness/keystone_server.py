"""Serves Keystone.  Run by the Python of Keystone's own virtual environment, without anything of Stoker's.

The port comes in the environment: Keystone reads the command line itself.
"""

import os

from cheroot import wsgi
from keystone.wsgi.api import application

if __name__ == "__main__":
    wsgi.Server(("127.0.0.1", int(os.environ["PORT"])), application, numthreads=4).start()
