"""The collaborators of the API's routes for consoles."""

from ...api.console import ConsoleServices
from .health import conductors_in_group
from .parts import Parts


def make_console(parts: Parts) -> ConsoleServices:
    """Make what the routes for consoles need.

    :raises WrongConfiguration: the options of the coordination are wrong.
    """
    return ConsoleServices(group=conductors_in_group(parts.conf))
