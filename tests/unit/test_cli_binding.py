"""Tokens are bound to their place as soon as no program runs that cannot open those, and not before."""

import pathlib

from stoker.cli.wiring.secrets import SCHEMA_POLL, binds_tokens
from stoker.db.engine import Database
from stoker.db.schema import revisions, upgrade
from stoker.sealing.stored import Sealer, is_bound


def test_tokens_are_bound_once_the_schema_is_contracted(tmp_path: pathlib.Path) -> None:
    database, now = Database(f"sqlite:///{tmp_path}/stoker.sqlite"), [100.0]
    upgrade.upgrade(database, revisions.EXPANDED)
    place = Sealer([Sealer.generate_key()], binds=binds_tokens(database, lambda: now[0])).of_credential(
        "root"
    )
    old = place.seal("secret")
    assert not is_bound(old)
    upgrade.upgrade(database, revisions.NEWEST)
    assert not is_bound(place.seal("secret")), "it does not ask the database for each token"
    now[0] += SCHEMA_POLL
    assert is_bound(new := place.seal("secret"))
    assert (place.open(old), place.open(new)) == ("secret", "secret")
    database.close()
    assert is_bound(place.seal("secret")), "it does not ask any more"
