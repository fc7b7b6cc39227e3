"""Reports of the daemons: when they are written."""

import logging
import queue
import threading
from collections.abc import Callable, Mapping

from oslo_config import cfg
from oslo_reports import opts

LOG = logging.getLogger(__name__)


def start_reports(
    conf: cfg.ConfigOpts, program: str, sections: Mapping[str, Callable[[], str]]
) -> Callable[[], None]:
    """Return a function, safe in signal handlers, that requests a report.

    It goes to standard error, or to [oslo_reports] log_dir.  A thread of its own writes it,
    for the thread that asks may hold a lock that a section needs.

    :param sections: functions that return the texts of our sections, by title; called in that thread.
    """
    opts.set_defaults(conf)
    if conf.oslo_reports.file_event_handler:
        _write(conf, program, sections)
        return lambda: None
    requested: queue.SimpleQueue[None] = queue.SimpleQueue()

    def write() -> None:
        while True:
            requested.get()
            try:
                _write(conf, program, sections)
            except (ImportError, OSError) as error:  # Perhaps the process can open no more files.
                LOG.error("Writing a report failed: %s", error)

    threading.Thread(target=write, name="reports", daemon=True).start()
    return lambda: requested.put(None)


def _write(conf: cfg.ConfigOpts, program: str, sections: Mapping[str, Callable[[], str]]) -> None:
    from . import guru_report  # noqa: PLC0415

    guru_report.write(conf, program, sections)
