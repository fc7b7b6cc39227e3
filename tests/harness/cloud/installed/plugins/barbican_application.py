"""Barbican's WSGI application, with the paste file that the environment names: its own is below /etc."""

import os

from paste import deploy

application = deploy.loadapp(f"config:{os.environ['BARBICAN_PASTE']}")
