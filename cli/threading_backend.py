"""Tells oslo.service that this process uses threads; to be imported before any other module of oslo."""

from oslo_service import backend

backend.init_backend(backend.BackendType.THREADING)
