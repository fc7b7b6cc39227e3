"""Reading the configuration again while a daemon runs."""

import logging

from oslo_config import cfg

from . import options
from .errors import WrongConfiguration

LOG = logging.getLogger(__name__)


def reload_options(conf: cfg.ConfigOpts, arguments: list[str], *, program: str) -> str:
    """Take over the options that can change at run time; log and return what has changed.

    An invalid configuration changes nothing: the daemon continues with the one that it has.
    """
    try:
        reloaded = options.reload(conf, arguments, program=program)
    except WrongConfiguration as error:
        LOG.error("The configuration stays as it is: %s", error)
        return f"the configuration stays as it is: {error}"
    if not reloaded.changed and not reloaded.ignored:
        LOG.info("The configuration was read again; nothing has changed")
        return "the configuration was read again; nothing has changed"
    parts = [f"changed: {', '.join(reloaded.changed)}"] if reloaded.changed else []
    if reloaded.ignored:
        parts.append(f"need a restart: {', '.join(reloaded.ignored)}")
    status = f"the configuration was read again; {'; '.join(parts)}"
    LOG.info("%s", status[0].upper() + status[1:])
    return status
