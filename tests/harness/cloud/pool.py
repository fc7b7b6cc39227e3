"""Projects that tests use one after the other: to make one takes as long as a short test."""

import contextlib
import threading
from collections.abc import Iterator

from harness.cloud.access import Cloud
from harness.cloud.project import Project

MEMBER = ("member",)
ADMIN = ("member", "admin")
"""Roles of a project's user."""


class ProjectPool:
    """Lends projects that are clean.  Any thread may call it."""

    def __init__(self, cloud: Cloud) -> None:
        self._cloud = cloud
        self._lock = threading.Lock()
        self._free: dict[tuple[str, ...], list[Project]] = {}
        self._made: list[Project] = []

    @contextlib.contextmanager
    def lent(self, roles: tuple[str, ...] = MEMBER) -> Iterator[Project]:
        """A project of nobody else, whose user has these roles; it is cleaned afterwards."""
        with self._lock:
            free = self._free.setdefault(roles, [])
            project = free.pop() if free else None
        if project is None:
            project = self._cloud.make_project(roles)
            with self._lock:
                self._made.append(project)
        try:
            yield project
        finally:
            project.clean()  # One that cannot be cleaned is not lent again.
            with self._lock:
                free.append(project)

    def close(self) -> None:
        """Remove all projects."""
        for project in self._made:
            self._cloud.remove_project(project)
