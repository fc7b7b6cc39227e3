"""Tells oslo.service that this process uses threads; to be imported before any other module of oslo."""

import warnings

# Some of oslo's libraries import eventlet where it is installed, which says that it is deprecated.
warnings.filterwarnings("ignore", message=r"(?s).*Eventlet is deprecated")

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)
