"""Selects the threading backend of oslo.service; to be imported before any other module of oslo.

It also sets the garbage collector, before the other modules make half a million objects that stay.
"""

import gc
import sys

GARBAGE = (20_000, 20, 50)
"""Thresholds of the garbage collector: almost no object of Stoker's is part of a cycle of references.

With Python's own, 700 objects, a sixth of the time of a long list was spent on searching for such circles,
and a fifteenth of a start.
"""
gc.set_threshold(*GARBAGE)

# Some of oslo's libraries import eventlet where it is installed, only to ask whether it is at work.  It is
# not, its import takes a tenth of a program's start, and says that it is deprecated: so it is not there.
sys.modules["eventlet"] = None  # type: ignore[assignment]

from oslo_service import backend  # noqa: E402

backend.init_backend(backend.BackendType.THREADING)
