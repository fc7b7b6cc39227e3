"""The open database that the commands of ``stoker-manage`` work on."""

from dataclasses import dataclass

from cliff.command import Command
from oslo_config import cfg

from ...db.engine import Database
from ...db.rows import Stack
from ...features.diagnosis import inspections
from ..wiring.database import open_database
from .base import AdminError, conf_of


@dataclass(frozen=True)
class Session:
    """An open database with its configuration."""

    conf: cfg.ConfigOpts
    database: Database
    shard_count: int


def session_of(command: Command, *, long_work: bool = False) -> Session:
    """Connect to the database, as the command's program is configured.

    :param long_work: whether statements may take as long as they need.
    :raises WrongConfiguration: the database cannot be used, as with `open_database`.
    """
    conf = conf_of(command)
    database, count = open_database(conf, long_work=long_work)
    return Session(conf, database, count)


def find_stack(session: Session, name: str, project: str | None) -> Stack:
    """Return the stack of a name or an id.

    :param name: the name or id, also of a nested stack.
    :param project: the project of the stack; None: any project.
    :raises AdminError: no stack, or several stacks have that name or id.
    """
    matches = session.database.read(lambda conn: inspections.find(conn, name, project))
    if not matches:
        owner = f" of project {project}" if project else ""
        raise AdminError(f"there is no stack {name}{owner}, by id or by name")
    if len(matches) > 1:
        ids = ", ".join(f"{stack.id} (project {stack.project_id})" for stack in matches)
        raise AdminError(f"several stacks are called {name}; name one by its id: {ids}")
    return matches[0]
