"""The table of subjects."""

import pathlib
from collections.abc import Callable, Mapping

from fuzz.guests import GuestRequests
from fuzz.messages import Messages
from fuzz.routes import Routes
from fuzz.rows import Rows
from fuzz.running import Subject
from fuzz.services import Services
from fuzz.templates import Templates

SUBJECTS: Mapping[str, Callable[[pathlib.Path], Subject]] = {
    "templates": lambda folder: Templates(),
    "routes": Routes,
    "guests": GuestRequests,
    "messages": Messages,
    "rows": Rows,
    "services": lambda folder: Services(),
}
"""Functions from an empty folder to a subject, by its name."""
