"""Guests in time: when a poll is stored, which time a document has; and signals that are signed."""

import dataclasses
import pathlib

import pytest
import sqlalchemy as sa
from keystoneclient.contrib.ec2.utils import Ec2Signer
from simulation.test_life import ADDRESSES, api_of
from simulation.world import World
from stoker.db import resources
from stoker.db.ids import ResourceId, StackId
from stoker.db.schema import tables
from stoker.engine.guests import RECORD_EVERY, DocumentCache, Guests
from stoker.engine.signal_urls import row_of_key
from stoker.resources.contract.guests import GuestAccess
from stoker.resources.contract.views import StackFacts

TEMPLATE = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "server": {"type": "OS::Heat::DeployedServer"},
        "handle": {"type": "OS::Heat::WaitConditionHandle"},
    },
}


class Made:
    """A stack with a server and a handle."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.api = api_of(world)
        answer = self.api.simulate_post("/v1/project/stacks", json={"stack_name": "s", "template": TEMPLATE})
        world.calm()
        self.stack_id = StackId(answer.json["stack"]["id"])

    def access(self, name: str) -> GuestAccess:
        """The keys of a resource."""
        r = tables.resource
        row_id = sa.select(r.c.id).where(r.c.name == name)
        row = ResourceId(self.world.database.read(lambda conn: conn.execute(row_id).scalar_one()))
        return ADDRESSES.guest_access(StackFacts(self.stack_id, "s", "project"), name, row)

    def poll(self) -> None:
        """Read the address of the server's metadata."""
        url = self.access("server").presigned
        path = url.endpoint.removeprefix("http://sim")
        assert self.api.simulate_get(path, query_string=f"Signature={url.signature}").status_code == 200

    def read_at(self) -> list[float]:
        """When guests have asked, as far as it is stored."""
        stored = sa.select(tables.software_server.c.read_at)
        return list(self.world.database.read(lambda conn: conn.execute(stored).scalars().all()))


@pytest.fixture
def created(tmp_path: pathlib.Path) -> Made:
    return Made(World(tmp_path, hosts=1))


def test_a_poll_is_stored_once_a_minute_and_when_there_is_something_new(created: Made) -> None:
    clock = created.world.clock
    began = created.world.clock()
    created.poll()
    assert created.read_at() == [began]
    clock.now += RECORD_EVERY - 1
    created.poll()
    assert created.read_at() == [began]
    clock.now += 1
    created.poll()
    assert created.read_at() == [began + RECORD_EVERY]


@pytest.mark.parametrize(("further", "status"), [(0, 200), (1, 403)])
def test_a_signal_reaches_the_row_that_its_address_was_made_for_only(
    created: Made, further: int, status: int
) -> None:
    row = row_of_key(created.access("handle").access_key)
    assert row is not None
    facts = StackFacts(created.stack_id, "s", "project")
    url = ADDRESSES.presigned(facts, "handle", row[1] + further)
    path = url.endpoint.removeprefix("http://sim")
    answer = created.api.simulate_post(path, query_string=f"Signature={url.signature}", json={})
    assert answer.status_code == status


def test_a_change_gets_a_later_time_than_every_answer_before_it(created: Made) -> None:
    guests = Guests(created.world.context, ADDRESSES, lambda config: None)
    row = row_of_key(created.access("server").access_key)
    assert row is not None
    server = guests.find(*row)
    assert server is not None
    clock = created.world.clock
    before = guests.last_modified(server)
    clock.now += 5
    later = dataclasses.replace(server, updated_at=clock.now)
    clock.now += 2
    assert guests.last_modified(server) <= int(server.updated_at)
    assert before < guests.last_modified(later)


def test_documents_are_kept_by_version_and_dropped_by_age(created: Made) -> None:
    guests = Guests(created.world.context, ADDRESSES, lambda config: None)
    row = row_of_key(created.access("server").access_key)
    assert row is not None
    server = guests.find(*row)
    assert server is not None
    cache = DocumentCache(10)
    cache.put(server, "x" * 10)
    assert cache.get(server) == "x" * 10
    assert cache.get(dataclasses.replace(server, generation=server.generation + 1)) is None
    cache.put(dataclasses.replace(server, id=ResourceId(99)), "y")
    assert cache.get(server) is None


@pytest.mark.parametrize(("method", "kind"), [("POST", "signal"), ("PUT", "waitcondition")])
def test_a_signal_that_is_signed_as_heat_signs_reaches_its_resource(
    created: Made, method: str, kind: str
) -> None:
    access = created.access("handle")
    path = f"/v1/{kind}/arn:openstack:heat::project:stacks/s/{created.stack_id}/resources/handle"
    params = {"AWSAccessKeyId": access.access_key, "SignatureVersion": "2"}
    signed = {"params": params, "verb": method, "host": "falconframework.org", "path": path}
    params["Signature"] = Ec2Signer(access.secret_key).generate(signed)
    answer = created.api.simulate_request(method, path, params=params, body='{"id": "one", "data": "d"}')
    assert answer.status_code == 200, answer.text
    view = created.api.simulate_get(f"/v1/project/stacks/s/{created.stack_id}/resources/handle/metadata")
    assert "one" in str(view.json)


def test_a_deployment_that_is_tried_again_keeps_its_reason(created: Made) -> None:
    config = {"type": "OS::Heat::SoftwareConfig"}
    properties = {"config": {"get_resource": "config"}, "server": "web"}
    waits = {"type": "OS::Heat::SoftwareDeployment", "properties": properties}
    template = {**TEMPLATE, "resources": {"config": config, "waits": waits}}
    created.api.simulate_post("/v1/project/stacks", json={"stack_name": "t", "template": template})
    created.world.calm()
    guests = Guests(created.world.context, ADDRESSES, lambda config: None)

    def reason(before: str) -> str:
        def read(conn: sa.Connection) -> str:
            stack_id = conn.execute(
                sa.select(tables.stack.c.id).where(tables.stack.c.name == "t")
            ).scalar_one()
            row = dataclasses.replace(resources.by_name(conn, stack_id, "waits"), reason=before)
            return guests.reasons(conn, [row]).get(row.id, row.reason)

        return created.world.database.read(read)

    for nothing in ("", "state changed"):
        assert reason(nothing).startswith("waits for a signal; server web has never asked")
    assert reason("will be tried again: x") == "will be tried again: x"
