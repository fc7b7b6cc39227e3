"""Sealing, from the configuration: the keys, and the addresses of signals."""

import secrets

from oslo_config import cfg

from ...db import settings as installation
from ...db.engine import Database
from ...engine.signal_urls import KEY_BYTES, SignalAddresses
from ...sealing.sealer import Sealer, SealError
from ...template.residual import ARGS, sealed
from ..config.errors import WrongConfiguration
from ..config.sections import Settings


def make_sealer(conf: cfg.ConfigOpts) -> Sealer:
    """Make the sealer with the configured keys.

    :raises WrongConfiguration: there is no key, or a key is malformed.
    """
    try:
        return Sealer(Settings(conf).sealing.keys)
    except ValueError as error:
        raise WrongConfiguration(f"[secrets] key: {error}") from error


def make_addresses(conf: cfg.ConfigOpts, database: Database, sealer: Sealer) -> SignalAddresses:
    """Make the signer of signals' addresses, with a key of the installation's own.

    The first process that needs the key generates and stores it.

    :raises WrongConfiguration: the sealing key that the stored key needs is missing.
    """
    installation_sealer = sealer.of_installation(installation.SIGNAL_KEY)
    fresh = sealed(installation_sealer.seal(secrets.token_hex(KEY_BYTES)))
    stored = database.write(lambda conn: installation.signal_key(conn, fresh))
    try:
        key = bytes.fromhex(installation_sealer.open(stored[ARGS][0]))
    except SealError as error:
        raise WrongConfiguration(
            f"[secrets] key: {error}; if it is lost, run stoker-manage secrets forget"
        ) from error
    settings = Settings(conf)
    return SignalAddresses(
        settings.api.public_url.rstrip("/"),
        key,
        signal_root=settings.guests.signal_root,
        metadata_root=settings.guests.metadata_root,
    )


def forget_lost_key(database: Database, sealer: Sealer) -> bool:
    """Remove the installation's own secret where no configured key opens it; return whether that was so."""
    stored = database.read(installation.stored_signal_key)
    if stored is None:
        return False
    try:
        sealer.of_installation(installation.SIGNAL_KEY).open(stored[ARGS][0])
    except SealError:
        database.write(lambda conn: installation.forget_signal_key(conn, stored))
        return True
    return False


def signal_root(conf: cfg.ConfigOpts) -> str:
    """Return the address under which servers and alarms send signals, without the version of the API."""
    settings = Settings(conf)
    return settings.guests.signal_root or settings.api.public_url.rstrip("/")
