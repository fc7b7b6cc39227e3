"""Giving back what users have handed over to stacks that are gone."""

import functools
import logging
import typing
from collections.abc import Callable

from ...db import credentials
from ...db.credentials import Unused
from ...db.engine import Database
from ...db.ids import StackId
from ...keystone.delegated_auth import KeystoneAway
from ...observe.logs import about
from ...sealing.sealer import SealError
from ..background import Background
from ..slice import Ring
from .stack_timeouts import FIRST_SHARD

Json = typing.Any
LOG = logging.getLogger(__name__)
PAGE = 5
"""At a time: each is a call or two of Keystone, which may be slow."""
LATER = 60.0
"""Seconds until it is tried again."""


class Credentials:
    """Revokes the credentials of deleted stacks, and of stacks that were never stored.

    That one is to be revoked is a column, written with the end of the stack, or before Keystone is asked for
    it: so none is forgotten while Keystone is away, or when a process dies.

    :param give_back: see traversal.delegation.Delegations.revoke.
    :param background: calls Keystone, which may hang.
    """

    interval = 2.0

    def __init__(
        self,
        *,
        database: Database,
        ring: Ring,
        clock: Callable[[], float],
        give_back: Callable[[StackId, Json], None],
        background: Background,
    ) -> None:
        self._database = database
        self._ring = ring
        self._clock = clock
        self._give_back = give_back
        self._background = background

    def run(self) -> None:
        """One round."""
        if not self._ring.owns(FIRST_SHARD):
            return
        now = self._clock()
        for found in self._database.read(lambda conn: credentials.unused(conn, now, limit=PAGE)):
            self._background.submit(found.root_id, functools.partial(self._revoke, found))

    def _revoke(self, found: Unused) -> None:
        with about(stack=found.root_id):
            self._revoke_now(found)

    def _revoke_now(self, found: Unused) -> None:
        now = self._clock()
        if not self._database.write(lambda conn: credentials.take(conn, found.root_id, now, now + LATER)):
            return
        try:
            self._give_back(found.root_id, found.body)
        except (KeystoneAway, SealError) as error:
            LOG.warning("The stack's credential cannot be revoked, it is tried again: %s", error)
            return
        self._database.write(lambda conn: credentials.forget(conn, found.root_id))
