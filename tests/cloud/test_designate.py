"""Zones and record sets on a real Designate."""

import typing

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.step_driver import Driven
from openstack.exceptions import NotFoundException
from stoker.resources.contract.properties import changed, resolve_reported
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.service import Conflict

Json = typing.Any
pytestmark = pytest.mark.usefixtures("names")
ZONE = "OS::Designate::Zone"
RECORD_SET = "OS::Designate::RecordSet"
EMAIL = "admin@cloud.test"


@pytest.fixture
def domain(project: Project) -> str:
    """A name that no other project has."""
    return f"{project.name}.test."


def changed_properties(driven: Driven) -> set[str]:
    """The properties that an update with ``converge`` would set again."""
    schema = driven.plugin.properties_schema
    expected = driven.target.properties
    live = driven.plugin.live_properties(driven.target, driven.context)
    assert "name" in live
    return set(changed(schema, expected, resolve_reported(schema, live, expected)) & live.keys())


def test_a_zone(make: Maker, project: Project, domain: str) -> None:
    names = project.connection.dns
    attributes = {"level": "gold"}
    zone = make(ZONE, name=domain, email=EMAIL, ttl=300, description="shop", attributes=attributes)
    view = names.get_zone(zone.id)
    assert (view.name, view.type, view.email, view.ttl) == (domain, "PRIMARY", EMAIL, 300)
    assert (view.status, view.description, view.attributes) == ("ACTIVE", "shop", attributes)
    assert str(zone.attribute("serial")) == str(view.serial)
    assert zone.update(email=f"new-{EMAIL}", ttl=600, description=None) == "updated"
    view = names.get_zone(zone.id)
    assert (view.status, view.email, view.ttl) == ("ACTIVE", f"new-{EMAIL}", 600)
    zone.act("check")
    assert changed_properties(zone) == set()
    with pytest.raises(Conflict, match="Duplicate Zone"):
        make(ZONE, name=domain, email=EMAIL)
    zone.delete()
    zone.delete()
    assert project.leftovers() == {}


def test_a_zone_of_another_server(make: Maker, project: Project, domain: str) -> None:
    zone = make(ZONE, name=domain, type="SECONDARY", primaries=["192.0.2.1"])
    view = project.connection.dns.get_zone(zone.id)
    assert (view.type, view.masters, view.status) == ("SECONDARY", ["192.0.2.1"], "ACTIVE")
    assert changed_properties(zone) == set()
    zone.delete()


def test_a_lost_creation_is_found_again(make: Maker, domain: str) -> None:
    zone = make.new(ZONE, name=domain, email=EMAIL)
    step = zone.plugin.handle_create(zone.target, zone.context)
    assert isinstance(step, Poll)
    assert zone.plugin.find_created(zone.target.key, zone.target, zone.context) == step.physical_id
    zone.take(step)
    zone.delete()


def test_record_sets_of_a_zone(make: Maker, project: Project, domain: str) -> None:
    names = project.connection.dns
    zone = make(ZONE, name=domain, email=EMAIL)
    addresses = [f"192.0.2.{number}" for number in range(1, 9)]
    properties = {"name": f"www.{domain}", "type": "A", "records": addresses, "ttl": 60}
    records = make(RECORD_SET, zone=domain, description="web", **properties)
    view = names.get_recordset(records.id, zone.id)
    assert (view.status, view.name, view.type, view.ttl) == ("ACTIVE", f"www.{domain}", "A", 60)
    assert (sorted(view.records), view.description) == (addresses, "web")
    assert records.attribute("show")["zone_name"] == domain
    assert changed_properties(records) == set()
    assert records.update(ttl=120, description="servers") == "updated"
    view = names.get_recordset(records.id, zone.id)
    assert (view.status, view.ttl, view.description) == ("ACTIVE", 120, "servers")
    assert sorted(view.records) == addresses
    names.update_recordset(view, zone_id=zone.id, records=addresses[1:])
    assert changed_properties(records) == {"records"}
    records.delete()
    with pytest.raises(NotFoundException):
        names.get_recordset(records.id, zone.id)
    short = make(RECORD_SET, zone=zone.id, **{**properties, "name": "short"})
    assert names.get_recordset(short.id, zone.id).name == f"short.{domain}"
    assert changed_properties(short) == set()
    unnamed = make(RECORD_SET, zone=zone.id, type="TXT", records=['"x"'])
    assert names.get_recordset(unnamed.id, zone.id).name == f"{unnamed.target.physical_name}.{domain}"
    for driven in (short, unnamed):
        driven.delete()
    zone.delete()
    records.delete()


def resource(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::{kind}", "properties": properties}


def test_a_stack_with_a_zone(stacks: Stacks, domain: str) -> None:
    """Record sets of one zone are created, changed and deleted at the same time."""
    records = {
        "A": ["192.0.2.1"],
        "AAAA": ["2001:db8::1"],
        "MX": [f"10 mail.{domain}"],
        "TXT": ['"v=spf1 -all"'],
        "SRV": [f"0 5 5060 sip.{domain}"],
    }

    def template(ttl: int) -> Json:
        sets = {
            kind: resource(
                "Designate::RecordSet",
                zone={"get_resource": "zone"},
                name=f"{'_sip._tcp' if kind == 'SRV' else 'www'}.{domain}",
                type=kind,
                records=values,
                ttl=ttl,
            )
            for kind, values in records.items()
        }
        zone = resource("Designate::Zone", name=domain, email=EMAIL)
        return {"heat_template_version": "2018-08-31", "resources": {"zone": zone, **sets}}

    names = stacks.project.connection.dns
    stack = stacks.create("names", template(60))
    zone = stack.physical_id("zone")
    stack.update(template(120))
    views = {view.type: view for view in names.recordsets(zone) if view.type in records}
    assert {kind: view.records for kind, view in views.items()} == records
    assert {(view.ttl, view.status) for view in views.values()} == {(120, "ACTIVE")}
    stack.delete()
    assert stacks.project.leftovers() == {}


def test_a_zone_that_exists_is_found_by_a_preflight_and_fails_without_it(stacks: Stacks, domain: str) -> None:
    stacks.project.connection.dns.create_zone(name=domain, email=EMAIL)
    zone = resource("Designate::Zone", name=domain, email=EMAIL)
    template = {"heat_template_version": "2018-08-31", "resources": {"zone": zone}}
    body = {"stack_name": "s", "template": template}
    answer = stacks.call("POST", "/stacks/preview?check_cloud=true", body)
    [finding] = answer.body["findings"]
    assert finding["message"] == f"there is a zone {domain} already"
    mode = {"resource_registry": {"stoker": {"preflight": "off"}}}
    failed = stacks.start("s", template, environment=mode).wait("CREATE_FAILED")
    assert "Duplicate Zone" in failed["stack_status_reason"]
