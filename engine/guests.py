"""Metadata for the guests of servers, and when each guest has asked for it."""

import json
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from cachetools import LRUCache
from sqlalchemy.engine import Connection

from ..db import imported_keys, resources, software, stacks
from ..db.ids import ResourceId, StackId
from ..db.queries import guests
from ..db.queries.guests import GuestPoll, GuestServer
from ..db.rows import ListedResource, Resource, Stack
from ..db.software import StoredConfig
from ..db.states import Status
from ..observe.instants import iso
from ..resources.contract.views import ResourceView
from ..resources.guests import collect_config, guest_metadata
from ..resources.heat.iam import ACCESS_KEY
from ..sealing.stored import in_clear
from ..shapes import Json, JsonMap
from .access_keys import readable
from .awaited_guests import describe_guest
from .context import EngineContext
from .signal_urls import SignalAddresses, row_of_key
from .stored_resource import facts_of

RECORD_EVERY = 60.0
"""Seconds between two records of a guest's polls, unless it gets something new."""
FLUSH_EVERY = 1.0
"""Seconds for which records are collected, to be stored in one transaction."""
NOTHING_SAID = ("", "state changed")
"""Reasons of resources in progress that have no other: a retry has one."""
MOST_CACHED = 32 * 1024 * 1024
"""Characters of documents that are kept to answer polls for which nothing has changed."""


@dataclass(frozen=True)
class _Stored:
    """The rows that a document is made of, of one moment."""

    server: GuestServer
    stack: Stack
    resource: Resource
    configs: Sequence[StoredConfig]


class Guests:
    """Answers the polls of guests.  Thread-safe.

    :param addresses: makes the addresses at which the guest asks the next time.
    :param view: makes a config's view for a guest, secrets in clear.
    """

    def __init__(
        self, context: EngineContext, addresses: SignalAddresses, view: Callable[[StoredConfig], Json]
    ) -> None:
        self._context = context
        self._addresses = addresses
        self._view = view
        self._cache = DocumentCache(MOST_CACHED)
        self._records = PollRecords(context)

    def secret(self, access_key: str) -> str:
        """Return the secret of a guest's access key; whether its row exists is not looked up."""
        return self._addresses.guest_secret(access_key)

    def imported(self, key: str) -> Sequence[tuple[GuestServer, str | None]]:
        """Return the resources for which a key or an account of before an import acts, each with its secret.

        Nobody but the one whose secret has signed, or whom the request names, may be taken.  An account has
        no secret.
        """
        resources_of_key = []
        for row in self._context.database.read(lambda conn: imported_keys.find(conn, key)):
            if (server := self.find(row.stack_id, row.resource_id)) is not None:
                sealer = self._context.sealer.of_stack(server.project_id, server.root_id)
                secret = None if row.secret is None else str(in_clear(row.secret, sealer.open))
                resources_of_key.append((server, secret))
        return resources_of_key

    def account(self, user_id: str, password: str) -> tuple[GuestServer, str] | None:
        """Return the resource for which an account acts, and the endpoint of Heat's API for it.

        None: there is no such account, its password is another one, or its resource is gone.
        """
        row = row_of_key(user_id)
        server = None if row is None else self.find(*row)
        if server is None:
            return None
        named = {"tenant_id": server.project_id, "stack_id": server.stack_id}
        named |= {"resource_name": server.name, "row": str(server.id)}
        purpose = self._addresses.purpose_of(named, password)
        return (
            None
            if purpose is None
            else (server, self._addresses.endpoint(purpose, server.project_id, server.id))
        )

    def find(self, stack_id: StackId, row: ResourceId) -> GuestServer | None:
        """Return the server of a row; None: it is gone.  This is one read by a primary key."""
        return self._context.database.read(lambda conn: guests.find(conn, stack_id, row))

    def readable(self, server: GuestServer, name: str) -> GuestServer | None:
        """Return the resource of that name, if who has the keys of a resource may read its metadata.

        A server's guest may read its own; an access key reads what the policies of its user allow.
        """
        if server.plugin != ACCESS_KEY:
            return server if server.name == name else None
        return self._context.database.read(lambda conn: readable(self._context, conn, server, name))

    def admits(self, server: GuestServer, transport: str) -> bool:
        """Return whether a server's guest may ask by a transport.

        The transport of before a change works until the guest has asked by the present one, for by the
        former it learns of the latter.  After that nobody else needs the former keys.
        """
        if server.read_by in (None, transport):
            return True
        stored = self._context.database.read(lambda conn: _read(conn, server.stack_id, server.id))
        present = None if stored is None else self._transport(stored)
        return present in (None, transport)

    def last_modified(self, server: GuestServer) -> int:
        """Return the seconds since the epoch for Last-Modified.

        os-collect-config reads a document again only where this has grown.  So it is below the present
        second: a change within the second of an answer gets a later one.
        """
        return math.floor(min(server.changed_at, self._context.clock() - 1))

    def document(self, server: GuestServer) -> tuple[GuestServer, str] | None:
        """Return the metadata as JSON text, and the server at the moment it was read.

        None: the row is gone.  Unless something has changed, the database is not asked.
        """
        if (document := self._cache.get(server)) is not None:
            return server, document
        read = self._context.database.read(lambda conn: _read(conn, server.stack_id, server.id))
        if read is None:
            return None
        text = json.dumps(self._make(read))
        self._cache.put(read.server, text)
        return read.server, text

    def deployments(self, conn: Connection, stack: Stack, server: Resource) -> Sequence[Json]:
        """Return the configs that a server's guest applies; none of other resources."""
        if server.physical_id is None:
            return ()
        configs = software.deployed_configs(conn, stack.project_id, server.physical_id)
        return [self._view(config) for config in configs]

    def record(self, server: GuestServer, transport: str) -> None:
        """Note that the server's guest has asked now by a transport, and got all there is."""
        self._records.add(server, transport)

    def reasons(
        self, conn: Connection, rows: Iterable[Resource | ListedResource]
    ) -> Mapping[ResourceId, str]:
        """Return the reasons of deployments that wait: they say when their servers' guests last asked."""
        is_deployment = self._context.registry.is_deployment
        waiting = [
            item.id
            for item in rows
            if item.status == Status.IN_PROGRESS
            and item.reason in NOTHING_SAID
            and is_deployment(item.plugin)
        ]
        if not waiting:
            return {}
        return {
            resource_id: f"waits for a signal; {describe_guest(guest, lambda at: f'at {iso(at)}')}"
            for resource_id, guest in guests.awaited(conn, waiting).items()
        }

    def _transport(self, stored: _Stored) -> str | None:
        """Return the transport that the template names; None: the guest applies no deployments."""
        plugin = self._context.registry.get(stored.resource.plugin)
        return plugin.guest_transport(self._view_of(stored))

    def _view_of(self, stored: _Stored) -> ResourceView:
        return self._context.stored_resource(stored.stack, stored.resource).view()

    def _make(self, stored: _Stored) -> JsonMap:
        target = self._view_of(stored)
        transport = self._transport(stored)
        if transport is None:
            return target.metadata
        plugin = self._context.registry.get(stored.resource.plugin)
        facts = facts_of(stored.stack)
        access = self._addresses.guest_access(facts, stored.resource.name, stored.resource.id)
        configs = [self._view(config) for config in stored.configs]
        return guest_metadata(
            target.metadata, collect_config(transport, access, plugin.guest_collectors), configs
        )


def _read(conn: Connection, stack_id: StackId, row: ResourceId) -> _Stored | None:
    server = guests.find(conn, stack_id, row)
    stack = stacks.find_undeleted(conn, stack_id)
    resource = resources.by_ids(conn, [row]).get(row)
    if server is None or stack is None or resource is None:
        return None
    physical_id = server.physical_id
    configs = software.deployed_configs(conn, server.project_id, physical_id) if physical_id else []
    return _Stored(server, stack, resource, configs)


class PollRecords:
    """Stores when guests have asked: the polls of many in one transaction.  Thread-safe.

    A record that is lost with its process costs nothing but that knowledge.
    """

    def __init__(self, context: EngineContext) -> None:
        self._context = context
        self._lock = threading.Lock()
        self._waiting: dict[tuple[str, str], GuestPoll] = {}
        self._flushed_at = -math.inf

    def add(self, server: GuestServer, transport: str) -> None:
        """Note a poll, if the last one that is stored is older than a minute, or differs from this one.

        The first one by another transport is stored at once: it ends the validity of the former keys.
        """
        now = self._context.clock()
        if server.physical_id is None:
            return
        key = server.physical_id, server.project_id
        poll = GuestPoll(*key, now, server.deployments_changed_at, transport)
        recent = server.read_at is not None and now - server.read_at < RECORD_EVERY
        if recent and (server.read_version, server.read_by) == (poll.version, transport):
            return
        with self._lock:
            former = server.read_by if (waiting := self._waiting.get(key)) is None else waiting.transport
            self._waiting[key] = poll
            if former in (None, transport) and now - self._flushed_at < FLUSH_EVERY:
                return
            due = self._waiting
            self._waiting = {}
            self._flushed_at = now
        self._context.database.write(lambda conn: guests.store_polls(conn, list(due.values())))


class DocumentCache:
    """The documents that were last made, up to a number of characters.  Thread-safe."""

    def __init__(self, most: int) -> None:
        self._lock = threading.Lock()
        self._kept: LRUCache[ResourceId, tuple[str, str]] = LRUCache(
            most, getsizeof=lambda kept: len(kept[1])
        )

    def get(self, server: GuestServer) -> str | None:
        """Return the document of a server, if it was made of the same version."""
        with self._lock:
            version, text = self._kept.get(server.id, ("", ""))
        return text if version == server.version else None

    def put(self, server: GuestServer, text: str) -> None:
        """Keep a document in the place of an older one, and drop those that nobody has asked for longest."""
        with self._lock:
            self._kept.pop(server.id, None)
            if len(text) <= self._kept.maxsize:
                self._kept[server.id] = server.version, text
