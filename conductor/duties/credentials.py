"""Revokes the credentials of stacks that are gone."""

import functools
import logging

from ...db import credentials
from ...db.credentials import Unused
from ...keystone.delegated_auth import KeystoneUnavailable
from ...observe.logs import about
from ...sealing.sealer import SealError
from .context import FIRST_SHARD, DutyContext

LOG = logging.getLogger(__name__)
PAGE = 5
"""Credentials of one round: each takes a call or two of Keystone, which may be slow."""
RETRY_AFTER = 60.0
"""Seconds until a revocation that failed is retried."""


class Credentials:
    """Revokes the credentials of deleted stacks, and of stacks that were never stored.

    A column marks a credential for revocation.  It is written in the transaction that ends the stack, or
    before Keystone is asked to create the credential.  So none is forgotten while Keystone is unavailable, or
    when a process dies.  Keystone may hang, so the background pool calls it.
    """

    interval = 2.0

    def __init__(self, context: DutyContext) -> None:
        self._context = context
        self._background = context.background("The revocation")

    def run(self) -> None:
        """Submit some revocations to the pool."""
        if not self._context.ring.owns(FIRST_SHARD):
            return
        now = self._context.clock()
        for credential in self._context.database.read(lambda conn: credentials.unused(conn, now, limit=PAGE)):
            self._background.submit(credential.root_id, functools.partial(self._revoke, credential))

    def _revoke(self, credential: Unused) -> None:
        with about(stack=credential.root_id):
            self._take_and_revoke(credential)

    def _take_and_revoke(self, credential: Unused) -> None:
        database = self._context.database
        now = self._context.clock()
        retry_at = now + RETRY_AFTER
        # Only one conductor calls Keystone: taking postpones the credential for all others.
        if not database.write(lambda conn: credentials.take(conn, credential.root_id, now, retry_at)):
            return
        try:
            self._context.revoke(credential.root_id, credential.body)
        except (KeystoneUnavailable, SealError) as error:
            LOG.warning("Revoking the credential of stack %s failed, retrying: %s", credential.root_id, error)
            return
        database.write(lambda conn: credentials.forget(conn, credential.root_id))
