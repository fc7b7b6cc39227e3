"""Operations on the quotas of projects, which the engine checks."""

from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.engine import Connection

from ...db import projects
from ...db.engine import Database
from ...engine.quotas import QuotaName, Quotas


@dataclass(frozen=True)
class QuotaUsage:
    """A limit of a project, and how much it has.

    :ivar limit, default: the project's limit, and that of projects for which no admin has set one; -1: no
        limit.
    """

    name: QuotaName
    limit: int
    default: int
    used: int


class QuotaOperations:
    """Shows and changes the quotas of projects.  Thread-safe."""

    def __init__(self, database: Database, quotas: Quotas) -> None:
        self._database = database
        self._quotas = quotas

    def usage(self, project_id: str) -> list[QuotaUsage]:
        """Return all quotas of a project."""
        project = self._database.read(lambda conn: projects.get(conn, project_id))
        defaults = self._quotas.defaults
        limits = {**defaults, **project.quotas}
        return [QuotaUsage(name, limits[name], defaults[name], project.usage[name]) for name in QuotaName]

    @property
    def defaults(self) -> Mapping[str, int]:
        """Return the limits of a project for which no admin has set others; -1: no limit."""
        return self._quotas.defaults

    def list_changed(self, after: str = "", limit: int | None = None) -> list[tuple[str, Mapping[str, int]]]:
        """Return the projects for which an admin has set quotas, by id, each with those quotas.

        :param after: the id behind which the list begins; "": at the first.
        :param limit: the most projects to return; None: all.
        """
        return self._database.read(lambda conn: projects.list_quotas(conn, after, limit))

    def change(self, project_id: str, limits: Mapping[str, int | None]) -> None:
        """Set quotas of a project; the others stay.

        :param limits: the new limits by name; -1: no limit; None: the default.
        """

        def change(conn: Connection) -> None:
            merged = {**projects.lock(conn, project_id).quotas, **limits}
            projects.set_quotas(conn, project_id, {name: n for name, n in merged.items() if n is not None})

        self._database.write(change)

    def reset(self, project_id: str) -> None:
        """Reset the quotas of a project to the defaults."""
        self.change(project_id, dict.fromkeys(QuotaName))
