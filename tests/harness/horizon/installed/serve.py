"""Serves Horizon: serve.py PORT, with Horizon's settings on the Python path.

Run by the Python of Horizon's own virtual environment, without anything of Stoker's.
"""

import sys

from cheroot import wsgi
from django.conf import settings
from openstack_dashboard.wsgi import application
from webob.static import DirectoryApp

if __name__ == "__main__":
    parts = {settings.STATIC_URL: DirectoryApp(settings.STATIC_ROOT), "/": application}
    address = ("127.0.0.1", int(sys.argv[1]))
    wsgi.Server(address, wsgi.PathInfoDispatcher(parts), numthreads=8, request_queue_size=128).start()
