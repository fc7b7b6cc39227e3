"""Rows of software configs and deployments: pages, what servers are to read, and what is purged."""

import typing
from dataclasses import replace

import pytest
import sqlalchemy as sa
from services.db.rows import NOW, a_resource, new_id
from stoker.db import projects, resources, software
from stoker.db.engine import Database
from stoker.db.errors import IdTaken, NotFound
from stoker.db.ids import ResourceId, StackId
from stoker.db.queries import guests
from stoker.db.queries.guests import AwaitedGuest, GuestPoll
from stoker.db.schema import tables
from stoker.db.software import OwningResource, StoredConfig, StoredDeployment

Json = typing.Any


def config(database: Database, **columns: Json) -> StoredConfig:
    fields = {
        "id": new_id(),
        "project_id": "acme",
        "name": "c",
        "tool": "script",
        "body": "b",
        "size": 1,
        "created_at": NOW,
    }
    new_config = StoredConfig(**{**fields, **columns})
    database.write(lambda conn: software.insert_config(conn, new_config))
    return new_config


def deployment(database: Database, config_id: str, **columns: Json) -> StoredDeployment:
    fields: dict[str, Json] = {
        **{"id": new_id(), "project_id": "acme", "server_id": "s1", "config_id": config_id},
        **{"action": "CREATE", "status": "IN_PROGRESS", "reason": "", "created_at": NOW},
    }
    new_deployment = StoredDeployment(**{**fields, **columns})
    database.write(lambda conn: software.insert_deployment(conn, new_deployment))
    return new_deployment


def version(database: Database, server_id: str = "s1", project_id: str = "acme") -> float | None:
    """When what a server is to read has changed last."""
    s = tables.software_server
    query = sa.select(s.c.changed_at).where(s.c.server_id == server_id, s.c.project_id == project_id)
    changed_at: float | None = database.read(lambda conn: conn.execute(query).scalar())
    return changed_at


def test_what_has_an_id_is_not_overwritten(database: Database) -> None:
    stored = config(database, body={"a": 1})
    deployed = deployment(database, stored.id)
    with pytest.raises(IdTaken):
        config(database, id=stored.id, body={"a": 2}, project_id="other")
    with pytest.raises(IdTaken):
        deployment(database, stored.id, id=deployed.id, project_id="other")
    assert database.read(lambda conn: software.get_config(conn, stored.id, "acme")) == stored
    assert database.read(lambda conn: software.get_deployment(conn, deployed.id, "acme")) == deployed


def test_a_foreign_id_is_one_that_nobody_has(database: Database) -> None:
    stored = config(database)
    deployed = deployment(database, stored.id)
    for get, key in ((software.get_config, stored.id), (software.get_deployment, deployed.id)):
        for given in (key, new_id()):
            with pytest.raises(NotFound) as error:
                database.read(lambda conn, get=get, given=given: get(conn, given, "other"))
            assert given in str(error.value)
        assert database.read(lambda conn, get=get, key=key: get(conn, key, None)).id == key


def owner(database: Database, project_id: str = "acme") -> OwningResource:
    """A resource that exists."""
    row = a_resource(new_id(), database.ids.new(int))
    database.write(lambda conn: resources.insert_many(conn, [row]))
    return OwningResource(row.id, row.stack_id, project_id)


def test_a_resource_has_what_names_it_and_nothing_else(database: Database) -> None:
    mine, other = owner(database), owner(database)
    columns = {"resource_id": mine.id, "stack_id": mine.stack_id}
    stored = config(database, **columns)
    deployed = deployment(database, stored.id, **columns)

    def things(resource: OwningResource) -> Json:
        def read(conn: sa.Connection) -> Json:
            of_resource = software.deployment_of(conn, resource, deployed.id)
            configs = [item.id for item in software.configs_of(conn, resource)]
            all_deployments = [item.id for item in software.deployments_of(conn, resource)]
            return (
                software.has_config(conn, resource, stored.id),
                of_resource is not None,
                configs == [stored.id],
                all_deployments == [deployed.id],
            )

        return database.write(read)

    assert things(mine) == (True, True, True, True)
    assert things(other) == things(replace(mine, project_id="other")) == (False, False, False, False)


def test_a_resource_adopts_what_is_of_its_project_and_belongs_to_nobody(database: Database) -> None:
    mine, other, gone = owner(database), owner(database), OwningResource(ResourceId(7), StackId("s"), "acme")

    def adopts(resource: OwningResource, **columns: Json) -> bool:
        stored = config(database, **columns)
        deployed = deployment(database, stored.id, **columns)
        try:
            database.write(lambda conn: software.adopt_deployment(conn, resource, deployed.id))
            is_derived = "resource_id" in columns
            assert database.read(lambda conn: software.has_config(conn, resource, stored.id)) == is_derived
            database.write(lambda conn: software.adopt_config(conn, resource, stored.id))
        except NotFound:
            with pytest.raises(NotFound):
                database.write(lambda conn: software.adopt_config(conn, resource, stored.id))
            return False
        return database.read(lambda conn: software.has_config(conn, resource, stored.id))

    assert adopts(mine)
    assert adopts(mine, resource_id=mine.id)
    assert adopts(mine, resource_id=gone.id), "its resource was abandoned"
    assert not adopts(mine, resource_id=other.id)
    assert not adopts(mine, project_id="other")
    assert not adopts(mine, project_id="other", resource_id=gone.id)


def test_configs_are_listed_by_pages_the_newest_first(database: Database) -> None:
    # Two of each moment: the order among them is that of their ids.
    configs = [config(database, created_at=NOW + number // 2) for number in range(6)]
    config(database, project_id="other")
    ordered = [c.id for c in sorted(configs, key=lambda c: (c.created_at, c.id), reverse=True)]
    pages: list[str] = []
    while True:
        marker = pages[-1] if pages else None
        page = database.read(
            lambda conn, marker=marker: software.list_configs(conn, "acme", limit=2, marker=marker)
        )
        if not page:
            break
        pages += [c.id for c in page]
    assert pages == ordered
    everywhere = database.read(lambda conn: software.list_configs(conn, None, limit=None, marker=None))
    assert len(everywhere) == 7
    with pytest.raises(NotFound):
        database.read(lambda conn: software.list_configs(conn, "other", limit=2, marker=configs[0].id))


def test_what_a_server_reads_gets_a_later_whole_second_with_each_change(database: Database) -> None:
    first = config(database)
    second = config(database)
    assert version(database) is None
    deployed = deployment(database, first.id)
    assert version(database) == int(NOW)
    moments = [version(database)]

    def change(**columns: Json) -> None:
        database.write(lambda conn: software.change_deployment(conn, deployed, columns, NOW + 0.1))
        moments.append(version(database))

    change(config_id=second.id)
    change(status="COMPLETE")
    database.write(lambda conn: software.delete_deployment(conn, deployed, NOW + 10))
    moments.append(version(database))
    # A status is nothing that the guest reads.
    assert moments == [int(NOW), int(NOW) + 1, int(NOW) + 1, int(NOW) + 10]


def test_a_server_reads_the_configs_of_its_project_by_their_names(database: Database) -> None:
    second = config(database, name="b")
    first = config(database, name="a")
    foreign = config(database, name="0", project_id="other")
    deployment(database, second.id)
    deployment(database, first.id)
    deployment(database, first.id, server_id="s2")
    deployment(database, foreign.id, project_id="other")
    configs = database.read(lambda conn: software.deployed_configs(conn, "acme", "s1"))
    assert [c.name for c in configs] == ["a", "b"]
    assert database.read(lambda conn: software.is_deployed(conn, first))
    unused = config(database)
    assert not database.read(lambda conn: software.is_deployed(conn, unused))


def test_a_deployment_refers_to_a_config_of_its_project_only(database: Database) -> None:
    foreign = config(database, project_id="other", size=5)
    deployment(database, foreign.id)
    assert database.read(lambda conn: software.deployed_configs(conn, "acme", "s1")) == []
    assert database.read(lambda conn: software.server_bytes(conn, "acme", "s1")) == 0
    assert not database.read(lambda conn: software.is_deployed(conn, foreign)), "it can be deleted"


def test_deployments_are_listed_by_project_and_server(database: Database) -> None:
    stored = config(database)
    ids = [
        deployment(database, stored.id, server_id=name, created_at=NOW + n).id for n, name in enumerate("aab")
    ]
    deployment(database, stored.id, project_id="other", server_id="a")

    def listed(*of: str) -> list[str]:
        return [d.id for d in database.read(lambda conn: software.list_deployments(conn, *of))]

    assert (listed("acme"), listed("acme", "a"), listed("acme", "c")) == (ids, ids[:2], [])
    assert database.read(lambda conn: projects.get(conn, "acme")).usage["software_deployments"] == 3


def test_servers_without_deployments_are_purged_some_time_later(database: Database) -> None:
    stored = config(database)
    removed = deployment(database, stored.id)
    used = deployment(database, stored.id, server_id="s2")
    database.write(lambda conn: software.delete_deployment(conn, removed, NOW + 5))

    def purge(before: float) -> int:
        server_ids = database.read(lambda conn: software.unused_servers(conn, before, limit=10))
        return database.write(lambda conn: software.forget_servers(conn, server_ids, before))

    assert purge(NOW + 5) == 0
    deployment(database, stored.id, server_id="s3")
    back = deployment(database, stored.id, created_at=NOW + 6)
    assert purge(NOW + 100) == 0
    database.write(lambda conn: software.delete_deployment(conn, back, NOW + 7))
    assert purge(NOW + 100) == 1
    assert (version(database), version(database, used.server_id)) == (None, int(NOW))


def test_the_guest_of_a_deployment_is_known_with_what_it_has_read(database: Database) -> None:
    stored = config(database)
    deployment(database, stored.id, resource_id=1)
    deployment(database, stored.id, server_id="s2", resource_id=2)

    def awaited() -> Json:
        return database.read(lambda conn: guests.awaited(conn, [ResourceId(n) for n in (1, 2, 3)]))

    def poll(read: float | None) -> None:
        polled = GuestPoll("s1", "acme", NOW + 5, read, "POLL_SERVER_CFN")
        database.write(lambda conn: guests.store_polls(conn, [polled]))

    other_guest = AwaitedGuest("s2", None, is_up_to_date=False)
    assert awaited() == {1: AwaitedGuest("s1", None, is_up_to_date=False), 2: other_guest}
    poll(version(database))
    assert awaited() == {1: AwaitedGuest("s1", NOW + 5, is_up_to_date=True), 2: other_guest}
    deployment(database, stored.id)
    assert awaited()[ResourceId(1)] == AwaitedGuest("s1", NOW + 5, is_up_to_date=False)
