"""Sealing, from the configuration: the keys, the addresses of signals, and the moment to bind tokens."""

import math
import re
import secrets
import threading
import time
from collections.abc import Callable

from oslo_config import cfg

from ...db import settings as installation
from ...db.engine import Database
from ...db.schema import revisions
from ...sealing.signal_urls import KEY_BYTES, SignalAddresses
from ...sealing.stored import Sealer, SealError
from ...template.residual import ARGS, sealed
from ..config.errors import WrongConfiguration

SCHEMA_POLL = 5.0
"""Seconds between two reads of the schema's version while it is not contracted."""
_TAIL = re.compile(r"/+(v1/*)?(waitcondition/*)?$")
"""The end of an address that Heat's options for servers may have."""


def make_sealer(conf: cfg.ConfigOpts, binds: Callable[[], bool] = lambda: True) -> Sealer:
    """Make the sealer with the configured keys.

    :param binds: see Sealer.
    :raises WrongConfiguration: there is no key, or a key is malformed.
    """
    try:
        return Sealer(conf.secrets.key, binds=binds)
    except ValueError as error:
        raise WrongConfiguration(f"[secrets] key: {error}") from error


def binds_tokens(database: Database, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Return a function that says whether new tokens may be bound to their place.

    They may once the schema is contracted: until then programs of the release before may run, which cannot
    open bound tokens.  The function reads the schema's version once in `SCHEMA_POLL` seconds, and never again
    after the answer was yes.
    """
    lock, known, until = threading.Lock(), False, -math.inf

    def binds() -> bool:
        nonlocal known, until
        with lock:
            if not known and clock() >= until:
                until = clock() + SCHEMA_POLL
                known = database.read(revisions.is_contracted)
            return known

    return binds


def make_addresses(conf: cfg.ConfigOpts, database: Database, sealer: Sealer) -> SignalAddresses:
    """Make what signs the addresses of signals, with a key of the installation's own.

    The first process that needs the key generates and stores it.

    :raises WrongConfiguration: the sealing key that the stored key needs is missing.
    """
    own = sealer.of_installation(installation.SIGNAL_KEY)
    fresh = sealed(own.seal(secrets.token_hex(KEY_BYTES)))
    stored = database.write(lambda conn: installation.signal_key(conn, fresh))
    try:
        key = bytes.fromhex(own.open(stored[ARGS][0]))
    except SealError as error:
        raise WrongConfiguration(f"[secrets] key: {error}") from error
    return SignalAddresses(
        conf.api.public_url.rstrip("/"),
        key,
        signal_root=_root(conf.guests.waitcondition_url),
        metadata_root=_root(conf.guests.metadata_url),
    )


def _root(url: str | None) -> str | None:
    """Return the root of addresses for servers; None: that of the API."""
    return _TAIL.sub("", url) if url else None
