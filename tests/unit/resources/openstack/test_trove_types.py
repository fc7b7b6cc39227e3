"""Database instances and clusters on scripted answers."""

import contextlib
import typing

import pytest
from harness.fake_context import run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.properties import resolve_properties
from stoker.resources.contract.steps import Poll

RESOURCE_TYPES = types_of("openstack.trove")

Json = typing.Any
CLUSTER = RESOURCE_TYPES["OS::Trove::Cluster"]()
INSTANCE = RESOURCE_TYPES["OS::Trove::Instance"]()
NET = "11111111-2222-4333-8444-555555555555"
SHOP = {"character_set": "utf8", "collate": "utf8_general_ci", "name": "shop"}
ANN = {"name": "ann", "password": "secret", "databases": ["shop"]}
PROPERTIES = {"name": "db", "flavor": "small", "size": 2, "databases": [{"name": "shop"}], "users": [ANN]}
MEMBER = {"flavor": "small", "volume_size": 2, "networks": [{"network": NET}]}
OF_CLUSTER = {"name": "c", "datastore_type": "redis", "datastore_version": "7", "instances": [MEMBER]}
LINKS = [{"rel": "bookmark", "href": "b"}, {"rel": "self", "href": "http://trove/i"}]


def has_instance(scripted: ScriptedService, status: str = "ACTIVE", **fields: Json) -> None:
    remote = {"id": "i", "name": "db", "status": status, "flavor": {"id": "f"}, "volume": {"size": 2}}
    remote |= {"links": LINKS, "hostname": "db.test", **fields}
    scripted.answers |= {
        "GET /flavors/small": Answer(200, {"flavor": {"id": "f", "name": "small"}}),
        "GET /instances": Answer(200, {"instances": []}),
        "POST /instances": Answer(200, {"instance": {**remote, "status": "BUILD"}}),
        "GET /instances/i": Answer(200, {"instance": remote}),
        "PATCH /instances/i": Answer(202),
        "POST /instances/i/action": Answer(202),
    }


def test_an_instance(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_instance(scripted)
    properties = {**PROPERTIES, "networks": [{"network": NET, "fixed_ip": "192.0.2.1"}], "restore_point": "b"}
    properties |= {"datastore_type": "mysql", "datastore_version": "8"}
    target = run(INSTANCE, "create", target_of(INSTANCE, properties), context)
    [body] = [each for each in scripted.sent if each]
    assert body == {
        "instance": {
            "name": "db",
            "flavorRef": "f",
            "volume": {"size": 2},
            "datastore": {"type": "mysql", "version": "8"},
            "nics": [{"net-id": NET, "v4-fixed-ip": "192.0.2.1"}],
            "databases": [SHOP],
            "users": [{**ANN, "host": "%", "databases": [{"name": "shop"}]}],
            "restorePoint": {"backupRef": "b"},
        }
    }
    attributes = INSTANCE.attribute_values(target)
    assert (attributes["hostname"], attributes["href"]) == ("db.test", "http://trove/i")


def test_an_instance_that_is_in_error(scripted: ScriptedService, context: ScriptedContext) -> None:
    for fields, reason in (({"fault": {"message": "no host"}}, "no host"), ({}, "failed due to an error")):
        has_instance(scripted, "ERROR", **fields)
        with pytest.raises(PermanentError, match=f"status ERROR due to .*{reason}"):
            run(INSTANCE, "create", target_of(INSTANCE, PROPERTIES), context)


def test_changes_are_made_one_after_the_other(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_instance(scripted)
    scripted.answers["GET /flavors/big"] = Answer(200, {"flavor": {"id": "g", "name": "big"}})
    target = target_of(INSTANCE, {**PROPERTIES, "name": "new", "flavor": "big", "size": 3}, physical_id="i")
    step = INSTANCE.handle_update(target, frozenset({"name", "flavor", "size"}), context)
    states: list[Json] = [{"status": "RESIZE"}, {}, {"name": "new"}, {"name": "new", "flavor": {"id": "g"}}]
    for fields in states:
        has_instance(scripted, **fields)
        step = INSTANCE.check_update_complete(target, step.progress, context)
        assert isinstance(step, Poll)
    assert [body for body in scripted.sent if body] == [
        {"instance": {"name": "new"}},
        {"resize": {"flavorRef": "g"}},
        {"resize": {"volume": {"size": 3}}},
    ]
    has_instance(scripted, name="new", flavor={"id": "g"}, volume={"size": 3})
    assert not isinstance(INSTANCE.check_update_complete(target, step.progress, context), Poll)


def test_databases_and_users_are_added_changed_and_removed(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_instance(scripted)
    old = {"databases": [{"name": "shop"}, {"name": "old"}]}
    users = [
        {"name": "ann", "host": "%", "databases": [{"name": "old"}]},
        {"name": "bob", "host": "%", "databases": []},
    ]
    scripted.answers |= {
        "GET /instances/i/databases": Answer(200, old),
        "GET /instances/i/users": Answer(200, {"users": users}),
        **{
            f"{request}": Answer(202)
            for request in (
                "POST /instances/i/databases",
                "DELETE /instances/i/databases/old",
                "POST /instances/i/users",
                "DELETE /instances/i/users/bob",
                "PUT /instances/i/users/ann",
                "PUT /instances/i/users/ann/databases",
                "DELETE /instances/i/users/ann/databases/old",
            )
        },
    }
    eve = {"name": "eve", "password": "more", "databases": ["new"]}
    after = {**PROPERTIES, "databases": [{"name": "shop"}, {"name": "new"}], "users": [ANN, eve]}
    target = target_of(INSTANCE, after, physical_id="i")
    run(INSTANCE, "update", target, context, changed=frozenset({"databases", "users"}))
    changes = [
        (request, body)
        for request, body in zip(scripted.requests, scripted.sent, strict=True)
        if not request.startswith("GET")
    ]
    assert changes == [
        ("POST /instances/i/databases", {"databases": [{**SHOP, "name": "new"}]}),
        ("DELETE /instances/i/databases/old", None),
        ("POST /instances/i/users", {"users": [{**eve, "host": "%", "databases": [{"name": "new"}]}]}),
        ("DELETE /instances/i/users/bob", None),
        ("PUT /instances/i/users/ann", {"user": {"host": "%", "password": "secret"}}),
        ("PUT /instances/i/users/ann/databases", {"databases": [{"name": "shop"}]}),
        ("DELETE /instances/i/users/ann/databases/old", None),
    ]


def test_live_properties_of_an_instance(scripted: ScriptedService, context: ScriptedContext) -> None:
    has_instance(scripted, volume={"size": 5})
    scripted.answers["GET /instances/i/databases"] = Answer(
        200, {"databases": [{"name": "x"}, {"name": "shop"}]}
    )
    target = target_of(INSTANCE, PROPERTIES, physical_id="i")
    assert INSTANCE.live_properties(target, context) == {
        "name": "db",
        "size": 5,
        "databases": [SHOP, {"name": "x"}],
    }


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({"datastore_version": "8"}, "datastore_version without datastore_type"),
        ({"databases": []}, "Databases property is required"),
        ({"databases": [{"name": "other"}]}, r"Database \['shop'\] specified for user does not exist"),
        ({"networks": [{}]}, "Either network or port"),
        ({"networks": [{"network": NET, "port": NET}]}, "Either network or port"),
    ],
)
def test_rules_of_an_instance(properties: Json, message: str) -> None:
    with pytest.raises(PropertyError, match=message):
        INSTANCE.validate(resolve_properties(INSTANCE.properties_schema, {**PROPERTIES, **properties}))
    INSTANCE.validate(resolve_properties(INSTANCE.properties_schema, PROPERTIES))


def has_cluster(scripted: ScriptedService, *states: str, task: str = "NONE") -> None:
    instances = [{"id": f"i{number}", "status": state} for number, state in enumerate(states)]
    remote = {"id": "c", "name": "c", "task": {"name": task}, "instances": instances, "ip": ["192.0.2.7"]}
    plain = {**remote, "instances": [{"id": one["id"]} for one in instances]}
    scripted.answers |= {
        "GET /flavors/small": Answer(200, {"flavor": {"id": "f", "name": "small"}}),
        "GET /clusters": Answer(200, {"clusters": []}),
        "POST /clusters": Answer(200, {"cluster": plain}),
        "GET /clusters/c": Answer(200, {"cluster": remote}),
        "DELETE /clusters/c": Answer(202),
    }


def test_a_cluster_is_complete_once_all_its_instances_are(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    has_cluster(scripted, "ACTIVE", "BUILD", task="BUILDING")
    target = target_of(CLUSTER, OF_CLUSTER)
    begun = CLUSTER.handle_create(target, context)
    step = CLUSTER.check_create_complete(target, begun.progress, context)
    assert isinstance(step, Poll)
    [body] = [each for each in scripted.sent if each]
    member = {"flavorRef": "f", "volume": {"size": 2}, "nics": [{"net-id": NET}]}
    datastore = {"type": "redis", "version": "7"}
    assert body == {"cluster": {"name": "c", "datastore": datastore, "instances": [member]}}
    has_cluster(scripted, "ACTIVE", "ACTIVE")
    done = run(CLUSTER, "create", target, context)
    assert CLUSTER.attribute_values(done)["instances"] == ["i0", "i1"]
    assert CLUSTER.attribute_values(done)["ip"] == ["192.0.2.7"]
    has_cluster(scripted, "ACTIVE", "FAILED")
    with pytest.raises(PermanentError, match="status FAILED due to"):
        run(CLUSTER, "create", target, context)


def test_a_cluster_is_deleted_once_the_service_has_time_for_it(
    scripted: ScriptedService, context: ScriptedContext
) -> None:
    target = target_of(CLUSTER, OF_CLUSTER, physical_id="c")
    step = CLUSTER.handle_delete(target, context)
    for task, deletions in (("BUILDING", 0), ("NONE", 1), ("DELETING", 1)):
        has_cluster(scripted, "ACTIVE", task=task)
        step = CLUSTER.check_delete_complete(target, step.progress, context)
        assert isinstance(step, Poll)
        assert scripted.requests.count("DELETE /clusters/c") == deletions
    del scripted.answers["GET /clusters/c"]
    assert not isinstance(CLUSTER.check_delete_complete(target, step.progress, context), Poll)


def test_rules_of_a_cluster() -> None:
    wrong = {**OF_CLUSTER, "instances": [{**MEMBER, "networks": [{}]}]}
    for properties, valid in ((OF_CLUSTER, True), (wrong, False)):
        resolved = resolve_properties(CLUSTER.properties_schema, properties)
        expected = contextlib.nullcontext() if valid else pytest.raises(PropertyError, match="Either network")
        with expected:
            CLUSTER.validate(resolved)
