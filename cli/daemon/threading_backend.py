"""Selects the threading backend of oslo.service; to be imported before any other module of oslo."""

import sys

# Some of oslo's libraries import eventlet where it is installed, only to ask whether it is at work.  It is
# not, its import takes a tenth of a program's start, and says that it is deprecated: so it is not there.
sys.modules["eventlet"] = None  # type: ignore[assignment]

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)
