"""The installation that the operator's commands work on: by its database, or over its API."""

import getpass
import os
import socket
import typing
import urllib.parse
from collections.abc import Iterator, Mapping, Sequence

from cliff.command import Command

from ...db import conductors, stacks
from ...db.conductors import StateRequest
from ...features.diagnosis import operator_views as views
from ...features.diagnosis.presence import Presence
from ...features.diagnosis.ring import plan_change
from ...features.quotas import views as quota_views
from ...features.quotas.operations import QuotaOperations
from ...resources.list_pages import EndlessList, ListReader
from ...ring.changes import WrongChange
from ...ring.hashring import View, assign
from ...shapes import Json, JsonMap
from ..config.sections import Settings
from ..wiring.messaging import make_bus
from ..wiring.operator_api import NOT_FOUND, ApiRefusal, NoCredentials, OperatorApi, open_operator_api
from .base import AdminError
from .presence import presence_of
from .sessions import Session, find_stack, session_of

VERBS = {conductors.DRAINING: "drain", conductors.ACTIVE: "undrain"}
PAGE = 500
"""Projects that one request lists."""


class Installation(typing.Protocol):
    """An installation as commands see and change it; doc/views.md has the shapes of the views.

    Each method raises AdminError where the installation refuses, or cannot be reached.
    """

    def ring(self) -> JsonMap:
        """Return the view of the ring."""

    def plan(self, change: JsonMap, *, shards: bool) -> JsonMap:
        """Return the view of the effects of a change of the ring.

        :param shards: whether each shard that moves is in the view.
        """

    def owner_of(self, stack: str, project: str | None) -> tuple[object, ...]:
        """Return id, name, shard and owner of a stack, and the reason why this is its owner.

        :param project: id of the stack's project; None: any.
        """

    def report(self, host: str) -> JsonMap | None:
        """Return the view of the last report of a conductor; None: it never reported."""

    def request_state(self, host: str, state: str, reason: str) -> None:
        """Request a state of a conductor: active or draining.

        :param reason: the operator's reason; "": none.
        """

    def poll_ring(self) -> None:
        """Ask all conductors to poll the ring's members now."""

    def quotas(self, project: str) -> JsonMap:
        """Return the view of all quotas of a project, by name.

        :param project: its id, or over the API its name; so for the next ones.
        """

    def quotas_by_project(self) -> Sequence[tuple[str, Mapping[str, int]]]:
        """Return the projects for which an admin has set quotas, by id, each with those quotas."""

    def set_quotas(self, project: str, limits: Mapping[str, int]) -> None:
        """Set quotas of a project; those that are not named stay."""

    def reset_quotas(self, project: str) -> None:
        """Give a project the default quotas."""


def installation_of(command: Command) -> Installation:
    """Return the installation that a command works on: that of --url, or that of the configuration.

    :raises AdminError: the credentials for --url are missing or wrong, or the address is.
    :raises WrongConfiguration: the database cannot be used.
    """
    address = typing.cast(typing.Any, command.app).options.url
    if address is None:
        return LocalInstallation(session_of(command))
    try:
        return RemoteInstallation(open_operator_api(address))
    except NoCredentials as error:
        raise AdminError(f"--url: {error}") from error


def ring_of(presence: Presence) -> View:
    """Return the ring.

    :raises AdminError: the group is unreachable, so the ring is unknown.
    """
    if presence.group is None:
        raise AdminError(
            f"the group of conductors is unreachable: {presence.unreachable}; see `config validate --connect`"
        )
    return presence.ring


class LocalInstallation(Installation):
    """An installation whose database, group and message bus are at hand."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def ring(self) -> JsonMap:
        presence = presence_of(self._session)
        by_shard = self._session.database.read(stacks.in_progress_by_shard)
        return views.ring(presence, by_shard, {}, shards=False)

    def plan(self, change: JsonMap, *, shards: bool) -> JsonMap:
        ring = ring_of(presence_of(self._session))
        try:
            effects = plan_change(ring, change, self._session.database.read(stacks.in_progress_by_shard))
        except WrongChange as error:
            raise AdminError(str(error)) from error
        return views.plan(effects, shards=shards)

    def owner_of(self, stack: str, project: str | None) -> tuple[object, ...]:
        row = find_stack(self._session, stack, project)
        view = ring_of(presence_of(self._session))
        owner = assign(view).owner_of(row.shard) if view.owners else None
        why = f"shard {row.shard} of {view.shard_count}; ring {view.version} of {len(view.owners)} members"
        return (row.id, row.name, row.shard, owner, why)

    def report(self, host: str) -> JsonMap | None:
        rows = self._session.database.read(conductors.list_all)
        row = next((row for row in rows if row.host == host), None)
        return None if row is None else views.report(row)

    def request_state(self, host: str, state: str, reason: str) -> None:
        database = self._session.database
        request = StateRequest(state, local_user(), database.clock(), reason)
        database.write(lambda conn: conductors.request_state(conn, host, request))

    def poll_ring(self) -> None:
        bus = make_bus(self._session.conf)
        bus.poll_now()
        bus.close()

    def quotas(self, project: str) -> JsonMap:
        return {str(item.name): quota_views.quota(item) for item in self._quotas().usage(project)}

    def quotas_by_project(self) -> Sequence[tuple[str, Mapping[str, int]]]:
        return self._quotas().list_changed()

    def set_quotas(self, project: str, limits: Mapping[str, int]) -> None:
        self._quotas().change(project, limits)

    def reset_quotas(self, project: str) -> None:
        self._quotas().reset(project)

    def _quotas(self) -> QuotaOperations:
        return QuotaOperations(self._session.database, Settings(self._session.conf).project.quotas())


class RemoteInstallation(Installation):
    """An installation whose API alone is at hand."""

    def __init__(self, api: OperatorApi) -> None:
        self._api = api

    def ring(self) -> JsonMap:
        return typing.cast(JsonMap, self._request("GET", "/ring")["ring"])

    def plan(self, change: JsonMap, *, shards: bool) -> JsonMap:
        path = f"/ring/plan?shards={str(shards).lower()}"
        return typing.cast(JsonMap, self._request("POST", path, change)["plan"])

    def owner_of(self, stack: str, project: str | None) -> tuple[object, ...]:
        raise AdminError(
            f"--stack needs the database; over the API `openstack stack inspect {stack}` explains a stack"
        )

    def report(self, host: str) -> JsonMap | None:
        try:
            conductor = self._api.request("GET", f"/conductors/{_quoted(host)}")["conductor"]
        except ApiRefusal as refusal:
            if refusal.status == NOT_FOUND:
                return None
            raise AdminError(str(refusal)) from refusal
        return None if conductor["state_reported"] is None else typing.cast(JsonMap, conductor)

    def request_state(self, host: str, state: str, reason: str) -> None:
        body = {"reason": reason} if reason else None
        self._request("POST", f"/ring/{_quoted(host)}/{VERBS[state]}", body)

    def poll_ring(self) -> None:
        self._request("POST", "/ring/rebalance")

    def quotas(self, project: str) -> JsonMap:
        return typing.cast(JsonMap, self._request("GET", self._quotas_path(project))["quotas"])

    def quotas_by_project(self) -> Sequence[tuple[str, Mapping[str, int]]]:
        return [(item["project"], item["quotas"]) for item in self._projects()]

    def set_quotas(self, project: str, limits: Mapping[str, int]) -> None:
        self._request("PUT", self._quotas_path(project), {"quotas": limits})

    def reset_quotas(self, project: str) -> None:
        self._request("DELETE", self._quotas_path(project))

    def _quotas_path(self, project: str) -> str:
        try:
            return f"/quotas/{_quoted(self._api.project_id(project))}"
        except ApiRefusal as refusal:
            raise AdminError(str(refusal)) from refusal

    def _projects(self) -> Iterator[Json]:
        """Yield the projects for which an admin has set quotas, a page after the other."""

        def path_after(marker: str) -> str:
            return f"/project_quotas?{urllib.parse.urlencode({'limit': PAGE, 'marker': marker})}"

        def following(page: JsonMap) -> str | None:
            return path_after(page["projects"][-1]["project"]) if page["projects"] else None

        def read(path: str) -> tuple[JsonMap, int]:
            return self._request("GET", path), 0

        reader = ListReader(read, following, checkpoint=lambda: None, endpoint=lambda: "")
        try:
            for page in reader.pages(path_after("")):
                yield from page["projects"]
        except EndlessList as error:
            raise AdminError(f"The service's list of projects is wrong: {error}") from error

    def _request(self, method: str, path: str, body: Json = None) -> Json:
        try:
            return self._api.request(method, path, body)
        except ApiRefusal as refusal:
            raise AdminError(str(refusal)) from refusal


def local_user() -> str:
    """Return the user of this process and its host, as in ``root@ops1``."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # An id without a name; the exception depends on Python's version.
        user = f"user {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="")
