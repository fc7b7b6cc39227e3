"""Creations that were interrupted: calls are repeated, and the service may carry out the lost ones, too."""

import dataclasses
import typing
import urllib.parse

import pytest
from harness.fake_context import START, after, run, target_of
from harness.resource_types import types_of
from harness.scripted_context import ScriptedContext, SharingContext
from harness.scripted_service import Answer, ScriptedService
from stoker.resources.contract.errors import PermanentError, ReplaceNeeded, RetryableError
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.contract.views import ReplacementView, ResourceView
from stoker.resources.openstack.attached import CLAIMED, AttachedType
from stoker.resources.openstack.cinder.attachments import attach, detach
from stoker.resources.openstack.declared import REMOTE
from stoker.resources.openstack.marks import mark_of
from stoker.resources.openstack.neutron.security_group import COMPARED
from stoker.resources.openstack.service import LATE_CALL

CINDER = types_of("openstack.cinder")
NEUTRON = types_of("openstack.neutron")
NOVA = types_of("openstack.nova")

Json = typing.Any
NET = NEUTRON["OS::Neutron::Net"]()
PORT = NEUTRON["OS::Neutron::Port"]()
GROUP = NEUTRON["OS::Neutron::SecurityGroup"]()
VOLUME = CINDER["OS::Cinder::Volume"]()
SERVER = NOVA["OS::Nova::Server"]()
KEY = "11111111-2222-4333-8444-555555555555"
REFUSED = Answer(400, {"badRequest": {"message": "not in this state", "code": 400}})


def has_networks(scripted: ScriptedService, *names: str) -> None:
    """The service has made these for the resource; it answers a creation by the first."""
    networks = [{"id": name, "status": "ACTIVE", "description": mark_of(KEY)} for name in names]
    scripted.answers["POST /networks"] = Answer(201, {"network": networks[0]})
    scripted.answers[f"GET /networks/{names[0]}"] = Answer(200, {"network": networks[0]})
    scripted.answers[f"GET /networks?description={mark_of(KEY)}"] = Answer(200, {"networks": networks})
    for name in names:
        scripted.answers[f"DELETE /networks/{name}"] = Answer(204)


def has_volumes(scripted: ScriptedService, **statuses: str) -> None:
    """The service has made these for the resource."""
    volumes = [
        {"id": name, "status": status, "metadata": {"stoker": mark_of(KEY)}, "attachments": []}
        for name, status in statuses.items()
    ]
    query = urllib.parse.urlencode({"metadata": str({"stoker": mark_of(KEY)})})
    scripted.answers[f"GET /volumes/detail?{query}"] = Answer(200, {"volumes": volumes})
    for volume in volumes:
        scripted.answers[f"GET /volumes/{volume['id']}"] = Answer(200, {"volume": volume})
        scripted.answers[f"DELETE /volumes/{volume['id']}"] = Answer(202)


def deletions(scripted: ScriptedService) -> list[str]:
    return [request for request in scripted.requests if request.startswith("DELETE")]


def volume_of(**fields: Json) -> ResourceView:
    return target_of(VOLUME, {"size": 1}, key=KEY, creation_key=KEY, **fields)


def test_a_repeated_creation_deletes_doubles_before_it_ends(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    has_networks(scripted, "first", "late")
    step = run(NET, "create", target_of(NET, key=KEY, attempt=2), context)
    assert step.physical_id == "first"
    assert deletions(scripted) == ["DELETE /networks/late"]
    assert context.time >= START + LATE_CALL


def test_a_lost_creation_is_repeated_when_it_can_be_found(scripted: ScriptedService) -> None:
    """A search at once would not find what the service is still working on."""
    scripted.answers["POST /networks"] = Answer(500, {})
    with pytest.raises(RetryableError, match="network 500") as lost:
        NET.handle_create(target_of(NET, key=KEY), ScriptedContext(scripted))
    assert (lost.value.after, lost.value.at_least) == (None, LATE_CALL)


@pytest.mark.parametrize("fields", [{"attempt": 1}, {"attempt": 2, "physical_id": "first"}])
def test_a_creation_that_was_requested_once_ends_at_once(scripted: ScriptedService, fields: Json) -> None:
    context = ScriptedContext(scripted)
    has_networks(scripted, "first")
    run(NET, "create", target_of(NET, key=KEY, **fields), context)
    assert context.time == START
    assert not [request for request in scripted.requests if "description" in request]


def test_a_repeated_creation_that_fails_leaves_no_double(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    has_volumes(scripted, first="error", late="available")
    target = volume_of(attempt=2, physical_id="first")
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        VOLUME.check_create_complete(target, {"since": START}, context)
    step = VOLUME.check_create_complete(target, {"since": START, "repeated": True}, context)
    assert isinstance(step, Poll)
    assert step.after == LATE_CALL
    context.time += step.after
    assert isinstance(VOLUME.check_create_complete(target, step.progress, context), Poll)
    assert deletions(scripted) == ["DELETE /volumes/late"]
    has_volumes(scripted, first="error")
    with pytest.raises(PermanentError, match="Went to status ERROR"):
        VOLUME.check_create_complete(target, step.progress, context)


def test_a_creation_that_is_refused_for_what_a_lost_call_has_made_takes_it(scripted: ScriptedService) -> None:
    """The lost call of a second subnet with the same range is carried out after the search for it."""
    has_networks(scripted, "first")
    scripted.answers["POST /networks"] = REFUSED
    step = run(NET, "create", target_of(NET, key=KEY, attempt=2), ScriptedContext(scripted))
    assert step.physical_id == "first"
    with pytest.raises(PermanentError, match="not in this state"):
        NET.handle_create(target_of(NET, key=KEY, attempt=1), ScriptedContext(scripted))
    scripted.answers[f"GET /networks?description={mark_of(KEY)}"] = Answer(200, {"networks": []})
    with pytest.raises(PermanentError, match="not in this state"):
        NET.handle_create(target_of(NET, key=KEY, attempt=2), ScriptedContext(scripted))


def test_what_a_failed_creation_orphaned_is_not_in_its_replacements_way(scripted: ScriptedService) -> None:
    has_networks(scripted, "lost")
    failed = target_of(NET, key="update", creation_key=KEY)
    assert NET.needs_replace_failed(failed, ScriptedContext(scripted))
    assert deletions(scripted) == ["DELETE /networks/lost"]
    scripted.answers["DELETE /networks/lost"] = Answer(409, {"NeutronError": {"message": "in use"}})
    with pytest.raises(RetryableError, match="what a lost creation has made is there still"):
        NET.needs_replace_failed(failed, ScriptedContext(scripted))


def test_what_a_lost_creation_made_makes_room_for_a_replacement(scripted: ScriptedService) -> None:
    """Both would have the same port; what was never created to the end has no physical id."""
    context = ScriptedContext(scripted)
    tag = mark_of(KEY)
    servers = [{"id": "lost", "status": "ACTIVE", "tags": [tag]}]
    scripted.answers[f"GET /servers/detail?tags={tag}"] = Answer(200, {"servers": servers})
    scripted.answers["DELETE /servers/lost"] = Answer(204)
    target = target_of(SERVER, {"flavor": "f"}, key="update", creation_key=KEY)
    assert isinstance(SERVER.prepare_for_replace(target, context), Poll)
    assert deletions(scripted) == ["DELETE /servers/lost"]
    scripted.answers[f"GET /servers/detail?tags={tag}"] = Answer(200, {"servers": []})
    assert SERVER.prepare_for_replace(target, context) is None


def test_a_port_is_detached_once_however_often_its_detachment_is_looked_at(scripted: ScriptedService) -> None:
    """The service works on it behind its answer; each view of a server makes it ask the network service."""
    port = "9c6d1f7e-0000-4000-8000-000000000001"
    mac = "fa:16:3e:00:00:01"
    address = {"subnet_id": "s", "ip_address": "10.0.0.3"}
    bound = {"id": port, "network_id": "n", "mac_address": mac, "fixed_ips": [address]}
    scripted.answers["GET /ports?device_id=old"] = Answer(200, {"ports": [bound]})
    addresses = {"net": [{"addr": "10.0.0.3", "OS-EXT-IPS-MAC:mac_addr": mac}]}
    server = {"server": {"status": "ACTIVE", "addresses": addresses}}
    scripted.answers["GET /servers/old"] = Answer(200, server)
    scripted.answers[f"DELETE /servers/old/os-interface/{port}"] = Answer(202)
    target = target_of(
        SERVER, {"flavor": "f", "networks": [{"port": port}]}, physical_id="old", data={REMOTE: {}}
    )
    context = SharingContext(scripted)
    for _ in range(3):
        assert isinstance(SERVER.prepare_for_replace(target, context), Poll)
    of_server = [request for request in scripted.requests if "/servers/old" in request]
    detached = f"DELETE /servers/old/os-interface/{port}"
    assert of_server == ["GET /servers/old", detached, "GET /servers/old", "GET /servers/old"]
    context.time += 10.0  # The service has lost it.
    assert isinstance(SERVER.prepare_for_replace(target, context), Poll)
    assert scripted.requests.count(detached) == 2


@pytest.mark.parametrize("is_known", [True, False])
def test_a_port_that_was_attached_halfway_is_released(scripted: ScriptedService, *, is_known: bool) -> None:
    """The compute service accepts to detach what it does not know of, and does nothing."""
    port = "9c6d1f7e-0000-4000-8000-000000000001"
    mac = "fa:16:3e:00:00:01"
    address = {"subnet_id": "s", "ip_address": "10.0.0.3"}
    bound = {"id": port, "network_id": "n", "mac_address": mac, "fixed_ips": [address]}
    scripted.answers["GET /ports?device_id=old"] = Answer(200, {"ports": [bound]})
    addresses = {"net": [{"addr": "10.0.0.3", "OS-EXT-IPS-MAC:mac_addr": mac}]} if is_known else {}
    scripted.answers["GET /servers/old"] = Answer(
        200, {"server": {"status": "ACTIVE", "addresses": addresses}}
    )
    scripted.answers[f"PUT /ports/{port}"] = Answer(200, {"port": {}})
    scripted.answers[f"DELETE /servers/old/os-interface/{port}"] = Answer(202)
    properties = {"flavor": "f", "networks": [{"port": port}]}
    target = target_of(SERVER, properties, physical_id="old", data={REMOTE: {}})
    assert isinstance(SERVER.prepare_for_replace(target, ScriptedContext(scripted)), Poll)
    released = f"DELETE /servers/old/os-interface/{port}" if is_known else f"PUT /ports/{port}"
    assert [request for request in scripted.requests if not request.startswith("GET")] == [released]


def test_a_creation_that_failed_before_its_last_call_is_not_kept(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    has_networks(scripted, "first")
    scripted.answers["PUT /networks/first/tags"] = Answer(200, {"tags": ["t"]})
    target = target_of(NET, {"tags": ["t"]}, key=KEY)
    step = NET.handle_create(target, context)
    assert isinstance(step, Poll)
    target = after(target, step)
    assert NET.needs_replace_failed(target, context)
    target = after(target, NET.check_create_complete(target, step.progress, context))
    assert "PUT /networks/first/tags" in scripted.requests
    assert not NET.needs_replace_failed(target, context)


def test_a_double_is_deleted_as_soon_as_the_service_lets_us(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    has_volumes(scripted, first="available", late="creating")
    scripted.answers["DELETE /volumes/late"] = REFUSED
    target = volume_of(attempt=2, physical_id="first")
    progress = {"since": START - LATE_CALL, "repeated": True}
    with pytest.raises(RetryableError, match="a lost creation has made is there still: block-storage 400"):
        VOLUME.check_create_complete(target, progress, context)
    has_volumes(scripted, first="available", late="deleting")
    scripted.answers["DELETE /volumes/late"] = REFUSED
    assert isinstance(VOLUME.check_create_complete(target, progress, context), Poll)


def test_a_deletion_ends_when_doubles_are_gone_too(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    has_volumes(scripted, late="available")
    step = VOLUME.handle_delete(volume_of(physical_id="first"), context)
    assert isinstance(step, Poll)
    assert deletions(scripted) == ["DELETE /volumes/first", "DELETE /volumes/late"]


def test_a_volume_is_deleted_when_the_service_works_on_it_no_more(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    has_volumes(scripted, first="creating")
    target = volume_of(physical_id="first", data={REMOTE: {}})
    step = VOLUME.handle_delete(target, context)
    assert isinstance(step, Poll)
    step = VOLUME.check_delete_complete(target, step.progress, context)
    assert isinstance(step, Poll)
    assert deletions(scripted) == []
    has_volumes(scripted, first="available")
    VOLUME.check_delete_complete(target, step.progress, context)
    assert deletions(scripted) == ["DELETE /volumes/first"]


@pytest.mark.parametrize("status", ["reserved", "attaching", "detaching"])
def test_an_attachment_waits_for_one_that_was_lost(scripted: ScriptedService, status: str) -> None:
    context = ScriptedContext(scripted)
    has_volumes(scripted, first=status)
    scripted.answers["POST /servers/s/os-volume_attachments"] = REFUSED
    with pytest.raises(RetryableError, match=f"the volume is {status}: compute 400"):
        attach(context, "s", "first", None)
    has_volumes(scripted, first="in-use")
    with pytest.raises(PermanentError, match="compute 400"):
        attach(context, "s", "first", None)


def test_a_group_is_read_when_its_rules_were_made_already(scripted: ScriptedService) -> None:
    rule = {"direction": "ingress", "ethertype": "IPv4", "protocol": "tcp"}
    egress = [{"id": version, "direction": "egress", "ethertype": version} for version in ("IPv4", "IPv6")]
    group = {"id": "g", "security_group_rules": [*egress, {**rule, "id": "made"}]}
    scripted.answers["GET /security-groups/g"] = Answer(200, {"security_group": group})
    scripted.answers["POST /security-group-rules"] = Answer(
        201, {"security_group_rules": [{**rule, "id": "made"}]}
    )
    stored = {REMOTE: {"id": "g", "security_group_rules": egress}}
    target = target_of(GROUP, {"rules": [rule]}, physical_id="g", data=stored)
    assert GROUP.after_create(target, ScriptedContext(scripted)) == group
    assert scripted.requests == ["POST /security-group-rules"]
    scripted.answers["POST /security-group-rules"] = Answer(409, {"NeutronError": {"message": "exists"}})
    assert GROUP.after_create(target, ScriptedContext(scripted)) == group
    assert scripted.requests[1:] == ["POST /security-group-rules", "GET /security-groups/g"]


def test_a_volume_is_detached_once_it_is_attached(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    path = "/servers/s/os-volume_attachments/first"
    has_volumes(scripted, first="attaching")
    scripted.answers[f"GET {path}"] = Answer(200, {"volumeAttachment": {}})
    scripted.answers[f"DELETE {path}"] = REFUSED
    with pytest.raises(RetryableError, match="the volume is attaching: compute 400"):
        detach(context, "s", "first")


def test_a_port_takes_its_addresses_from_its_replacement(scripted: ScriptedService) -> None:
    context = ScriptedContext(scripted)
    ports = [{"id": "made", "description": mark_of("new key")}]
    scripted.answers[f"GET /ports?{urllib.parse.urlencode({'description': mark_of('new key')})}"] = Answer(
        200, {"ports": ports}
    )
    scripted.answers["PUT /ports/made"] = Answer(200, {"port": {}})
    scripted.answers["PUT /ports/old"] = Answer(409, {"NeutronError": {"message": "in use"}})
    target = target_of(PORT, {"network": "n"}, physical_id="old", data={REMOTE: {"fixed_ips": [{"a": 1}]}})
    context.replaced_by = ReplacementView(target.type, "new key")
    with pytest.raises(RetryableError, match="still in use: network 409"):
        PORT.restore_after_replace(target, context)
    assert [request for request in scripted.requests if request.startswith("PUT")] == [
        "PUT /ports/made",
        "PUT /ports/old",
    ]


ROUTER_ID, PLACE_ID, ADDRESS_ID = (f"{number}1111111-2222-4333-8444-555555555555" for number in (1, 2, 3))
SERVER_ID = "41111111-2222-4333-8444-555555555555"
INTERFACE_ID = f"{ROUTER_ID}:subnet_id={PLACE_ID}"


@dataclasses.dataclass(frozen=True)
class AttachmentCase:
    """A type that attaches, and the calls that it makes.

    :ivar finds: the call that reads the attachment.
    :ivar present: its answer where the two are attached; `absent`: where they are not.
    """

    name: str
    properties: Json
    attaches: str
    finds: str
    detaches: str
    present: Json
    absent: Answer
    physical_id: str

    @property
    def plugin(self) -> AttachedType:
        plugin = {**NEUTRON, **CINDER}[self.name]()
        assert isinstance(plugin, AttachedType)
        return plugin

    def target(self, **fields: Json) -> ResourceView:
        return target_of(self.plugin, self.properties, key=KEY, creation_key=KEY, **fields)

    def service_has(self, scripted: ScriptedService, *, attached: bool) -> None:
        scripted.answers[self.finds] = Answer(200, self.present) if attached else self.absent


ATTACHMENT_CASES = [
    AttachmentCase(
        name="OS::Neutron::RouterInterface",
        properties={"router": ROUTER_ID, "subnet": PLACE_ID},
        attaches=f"PUT /routers/{ROUTER_ID}/add_router_interface",
        finds=f"GET /ports?device_id={ROUTER_ID}",
        detaches=f"PUT /routers/{ROUTER_ID}/remove_router_interface",
        present={"ports": [{"id": "p", "fixed_ips": [{"subnet_id": PLACE_ID}]}]},
        absent=Answer(200, {"ports": []}),
        physical_id=INTERFACE_ID,
    ),
    AttachmentCase(
        name="OS::Neutron::FloatingIPAssociation",
        properties={"floatingip_id": ADDRESS_ID, "port_id": PLACE_ID},
        attaches=f"PUT /floatingips/{ADDRESS_ID}",
        finds=f"GET /floatingips/{ADDRESS_ID}",
        detaches=f"PUT /floatingips/{ADDRESS_ID}",
        present={"floatingip": {"id": ADDRESS_ID, "port_id": PLACE_ID}},
        absent=Answer(200, {"floatingip": {"id": ADDRESS_ID, "port_id": None}}),
        physical_id=ADDRESS_ID,
    ),
    AttachmentCase(
        name="OS::Cinder::VolumeAttachment",
        properties={"instance_uuid": SERVER_ID, "volume_id": PLACE_ID},
        attaches=f"POST /servers/{SERVER_ID}/os-volume_attachments",
        finds=f"GET /servers/{SERVER_ID}/os-volume_attachments/{PLACE_ID}",
        detaches=f"DELETE /servers/{SERVER_ID}/os-volume_attachments/{PLACE_ID}",
        present={"volumeAttachment": {"serverId": SERVER_ID, "volumeId": PLACE_ID}},
        absent=Answer(404, {"itemNotFound": {"message": "none"}}),
        physical_id=PLACE_ID,
    ),
]
each_attachment = pytest.mark.parametrize("case", ATTACHMENT_CASES, ids=lambda case: case.name)


def changes_of(scripted: ScriptedService) -> list[str]:
    return [request for request in scripted.requests if not request.startswith("GET")]


def has_volume_in_use(scripted: ScriptedService) -> None:
    """The volume is attached already, as the block storage service has it."""
    attachments = [{"server_id": SERVER_ID}]
    volume = {"id": PLACE_ID, "status": "in-use", "attachments": attachments}
    scripted.answers[f"GET /volumes/{PLACE_ID}"] = Answer(200, {"volume": volume})


@each_attachment
@pytest.mark.parametrize("status", [400, 409])
def test_a_refused_attachment_is_its_own_if_the_link_was_free_before(
    scripted: ScriptedService, case: AttachmentCase, status: int
) -> None:
    """A proxy has sent the call twice: the step saw one call only."""
    context = ScriptedContext(scripted)
    has_volume_in_use(scripted)
    case.service_has(scripted, attached=False)
    step = case.plugin.handle_create(case.target(), context)
    assert isinstance(step, Poll)
    assert changes_of(scripted) == []
    begun = after(case.target(), step)
    scripted.answers[case.attaches] = Answer(status, {"NeutronError": {"message": "has it already"}})
    with pytest.raises((PermanentError, RetryableError), match="has it already"):
        case.plugin.check_create_complete(begun, step.progress, context)
    case.service_has(scripted, attached=True)
    if (case.name, status) == ("OS::Cinder::VolumeAttachment", 409):
        # The compute service says so of a server that is busy, too: the step is repeated.
        begun = dataclasses.replace(begun, attempt=2)
    attached = after(begun, case.plugin.check_create_complete(begun, step.progress, context))
    assert attached.physical_id == case.physical_id
    assert case.plugin.needs_replace_failed(attached, context) is False


@each_attachment
def test_an_attachment_that_was_there_before_is_not_touched(
    scripted: ScriptedService, case: AttachmentCase
) -> None:
    """Another stack has it: its service refuses a second one, and the deletion leaves it."""
    context = ScriptedContext(scripted)
    has_volume_in_use(scripted)
    case.service_has(scripted, attached=True)
    scripted.answers[case.attaches] = Answer(400, {"NeutronError": {"message": "has it already"}})
    for attempt in (1, 2):
        with pytest.raises(PermanentError, match="has it already"):
            case.plugin.handle_create(case.target(attempt=attempt), context)
    other_link = case.target(attempt=2, data={CLAIMED: ["another", "link"]})
    with pytest.raises(PermanentError, match="has it already"):
        case.plugin.check_create_complete(other_link, {"phase": CLAIMED}, context)
    failed = case.target()
    assert case.plugin.find_created(KEY, failed, context) is None
    assert case.plugin.needs_replace_failed(failed, context)
    assert changes_of(scripted) == [case.attaches] * 3


@each_attachment
def test_an_attachment_of_a_lost_call_is_found_and_detached(
    scripted: ScriptedService, case: AttachmentCase
) -> None:
    context = ScriptedContext(scripted)
    case.service_has(scripted, attached=False)
    step = case.plugin.handle_create(case.target(), context)
    lost = after(case.target(), step)
    assert case.plugin.find_created(KEY, lost, context) is None
    case.service_has(scripted, attached=True)
    assert case.plugin.find_created(KEY, lost, context) == case.physical_id
    unresolved = dict.fromkeys(case.plugin.properties_schema)
    by_delete = dataclasses.replace(lost, physical_id=case.physical_id, properties=unresolved)
    assert case.plugin.stored_link(by_delete, context) == case.plugin.stored_link(lost, context)
    scripted.answers[case.detaches] = Answer(202 if case.plugin.slow else 200, {})
    if case.plugin.slow:
        with pytest.raises(RetryableError, match="of a lost call"):
            case.plugin.needs_replace_failed(lost, context)
    else:
        assert case.plugin.needs_replace_failed(lost, context)
    assert changes_of(scripted) == [case.detaches]


@each_attachment
def test_an_attachment_that_was_made_is_checked_and_ended(
    scripted: ScriptedService, case: AttachmentCase
) -> None:
    plugin = case.plugin
    context = ScriptedContext(scripted)
    case.service_has(scripted, attached=True)
    has_volumes(scripted, **{PLACE_ID: "in-use"})
    stored = next(iter(case.present.values()))
    data = {REMOTE: stored} if isinstance(stored, dict) else {}
    target = case.target(physical_id=case.physical_id, data=data)
    run(plugin, "check", target, context)
    assert not plugin.needs_replace_failed(target, context)
    scripted.answers[case.detaches] = Answer(409, {"NeutronError": {"message": "in use"}})
    with pytest.raises(RetryableError, match="still in use"):
        plugin.handle_delete(target, context)
    scripted.answers[case.detaches] = Answer(200, {})
    for lost in (target, dataclasses.replace(target, data={})):
        scripted.requests.clear()
        plugin.handle_delete(lost, context)
        assert scripted.requests[-1] == case.detaches
    case.service_has(scripted, attached=False)
    assert plugin.needs_replace_failed(target, context)
    with pytest.raises(PermanentError, match=r"network: (floating IP|the router)|compute: volume"):
        plugin.handle_check(target, context)


@each_attachment
def test_what_was_replaced_leaves_the_attachment_to_its_replacement(
    scripted: ScriptedService, case: AttachmentCase
) -> None:
    context = ScriptedContext(scripted)
    case.service_has(scripted, attached=True)
    scripted.answers[case.detaches] = Answer(200, {})
    stored = next(iter(case.present.values()))
    data = {REMOTE: stored} if isinstance(stored, dict) else {}
    replaced = case.target(physical_id=case.physical_id, data=data)
    context.replaced_by = ReplacementView(replaced.type, "new key", case.physical_id, data)
    assert isinstance(case.plugin.handle_delete(replaced, context), Done)
    assert changes_of(scripted) == []
    context.replaced_by = ReplacementView(replaced.type, "new key", "another")
    case.plugin.handle_delete(replaced, context)
    assert changes_of(scripted) == [case.detaches]


def test_a_rule_is_its_own_if_there_was_none_before(scripted: ScriptedService) -> None:
    plugin = NEUTRON["OS::Neutron::SecurityGroupRule"]()
    context = ScriptedContext(scripted)
    new = target_of(plugin, {"security_group": PLACE_ID, "protocol": "icmp"}, key=KEY, creation_key=KEY)
    finds = "GET /security-group-rules"
    equal = {"id": "r", **dict.fromkeys(COMPARED), **plugin.create_body(new, context)}
    scripted.answers["POST /security-group-rules"] = Answer(409, {"NeutronError": {"message": "exists"}})
    scripted.answers["GET /security-group-rules/r"] = Answer(200, {"security_group_rule": equal})
    scripted.answers["DELETE /security-group-rules/r"] = Answer(204)
    scripted.answers[finds] = Answer(200, {"security_group_rules": [equal]})
    for attempt in (1, 2):
        with pytest.raises(PermanentError, match="exists"):
            run(plugin, "create", dataclasses.replace(new, attempt=attempt), context)
    assert plugin.find_created(KEY, dataclasses.replace(new, attempt=2), context) is None
    scripted.answers[finds] = Answer(200, {"security_group_rules": []})
    step = plugin.handle_create(new, context)
    assert isinstance(step, Poll)
    begun = after(new, step)
    scripted.answers[finds] = Answer(200, {"security_group_rules": [equal]})
    assert plugin.check_create_complete(begun, step.progress, context).physical_id == "r"
    assert plugin.needs_replace_failed(begun, context)
    assert deletions(scripted) == ["DELETE /security-group-rules/r"]


@pytest.mark.parametrize(
    "plugin",
    [NEUTRON["OS::Neutron::FloatingIPAssociation"](), CINDER["OS::Cinder::VolumeAttachment"]()],
    ids=lambda plugin: type(plugin).__name__,
)
def test_an_attachment_of_which_nothing_is_known_can_be_deleted(
    scripted: ScriptedService, plugin: ResourceType
) -> None:
    """The resource was to be adopted, and its properties are wrong."""
    unknown = dict.fromkeys(plugin.properties_schema)
    named = dict.fromkeys(plugin.properties_schema, "10.0.0.1")
    target = dataclasses.replace(target_of(plugin, named, physical_id=PLACE_ID), properties=unknown)
    assert isinstance(plugin.handle_delete(target, ScriptedContext(scripted)), Done)


def test_a_volume_is_attached_again_to_another_server(scripted: ScriptedService) -> None:
    plugin = CINDER["OS::Cinder::VolumeAttachment"]()
    context = ScriptedContext(scripted)
    old = ROUTER_ID
    new = ADDRESS_ID
    volume = PLACE_ID
    attached_to = [{"server_id": new}]
    states: dict[str, Json] = {
        "free": {"id": volume, "status": "available", "attachments": []},
        "used": {"id": volume, "status": "in-use", "attachments": attached_to},
    }
    attachment = {"volumeId": volume, "serverId": new}
    scripted.answers[f"DELETE /servers/{old}/os-volume_attachments/{volume}"] = Answer(202)
    scripted.answers[f"POST /servers/{new}/os-volume_attachments"] = Answer(
        200, {"volumeAttachment": attachment}
    )
    scripted.answers[f"GET /volumes/{volume}"] = Answer(200, {"volume": states["free"]})
    target = target_of(
        plugin,
        {"instance_uuid": new, "volume_id": volume},
        key=KEY,
        physical_id=volume,
        data={REMOTE: {"volumeId": volume, "serverId": old}},
    )
    detaching = plugin.handle_update(target, frozenset({"instance_uuid"}), context)
    assert isinstance(detaching, Poll)
    scripted.answers[f"GET /servers/{new}/os-volume_attachments/{volume}"] = Answer(404, {})
    claiming = plugin.check_update_complete(target, detaching.progress, context)
    assert isinstance(claiming, Poll)
    target = after(target, claiming)
    attaching = plugin.check_update_complete(target, claiming.progress, context)
    assert isinstance(attaching, Poll)
    assert (attaching.physical_id, attaching.data) == (volume, {REMOTE: attachment})
    scripted.answers[f"GET /volumes/{volume}"] = Answer(200, {"volume": states["used"]})
    moved = dataclasses.replace(target, data=attaching.data)
    assert isinstance(plugin.check_update_complete(moved, attaching.progress, context), Done)


def test_a_port_releases_its_floating_ip_and_takes_it_back(scripted: ScriptedService) -> None:
    """The service frees no address of a port that a floating IP leads to."""
    context = ScriptedContext(scripted)
    port = "9c6d1f7e-0000-4000-8000-000000000001"
    address = "10.0.0.3"
    floating = {"id": "f", "port_id": port, "fixed_ip_address": address}
    tag = f"stoker-{port}-{address}"
    refused = Answer(400, {"NeutronError": {"message": "associated to a floating ip"}})
    scripted.answers[f"PUT /ports/{port}"] = refused
    scripted.answers[f"GET /floatingips?port_id={port}"] = Answer(200, {"floatingips": [floating]})
    scripted.answers[f"PUT /floatingips/f/tags/{tag}"] = Answer(200)
    scripted.answers["PUT /floatingips/f"] = Answer(200, {"floatingip": floating})
    fixed = [{"subnet_id": "s", "ip_address": address}]
    target = target_of(PORT, {"network": "n"}, physical_id=port, data={REMOTE: {"fixed_ips": fixed}})
    with pytest.raises(PermanentError, match="associated to a floating ip"):  # Scripted: it stays refused.
        PORT.prepare_for_replace(target, context)
    changes = [request for request in scripted.requests if not request.startswith("GET")]
    assert changes == [
        f"PUT /ports/{port}",
        f"PUT /floatingips/f/tags/{tag}",
        "PUT /floatingips/f",
        f"PUT /ports/{port}",
    ]

    for holder, bodies in (("made", [None]), (None, [port]), ("somebody's", [])):
        scripted.requests.clear()
        scripted.sent.clear()
        scripted.answers[f"PUT /ports/{port}"] = Answer(200, {"port": {}})
        scripted.answers["PUT /ports/made"] = Answer(200, {"port": {}})
        scripted.answers["GET /ports"] = Answer(200, {"ports": []})
        released = {**floating, "port_id": holder}
        scripted.answers["GET /floatingips"] = Answer(200, {"floatingips": [released]})
        scripted.answers[f"DELETE /floatingips/f/tags/{tag}"] = Answer(204)
        context.replaced_by = ReplacementView(target.type, "new key", "made")
        PORT.restore_after_replace(target, context)
        pairs = zip(scripted.requests, scripted.sent, strict=True)
        sent = [body["floatingip"]["port_id"] for request, body in pairs if request == "PUT /floatingips/f"]
        assert sent == bodies
        assert scripted.requests[-1] == f"DELETE /floatingips/f/tags/{tag}"


VOLUME_ID = "51111111-2222-4333-8444-555555555555"


def server_with_volume(scripted: ScriptedService, **disk: Json) -> typing.Any:
    """A server that has a volume by its id; it is to be replaced by one that names the same."""
    has_server(scripted, [VOLUME_ID])
    mapping = {"volume_id": VOLUME_ID, **disk}
    properties = {"flavor": "f", "block_device_mapping_v2": [mapping]}
    return target_of(SERVER, properties, physical_id="old", data={REMOTE: {}})


def has_server(scripted: ScriptedService, volumes: list[str] | None) -> None:
    server = {"id": "old", "status": "ACTIVE", "addresses": {}}
    attached = {"os-extended-volumes:volumes_attached": [{"id": volume} for volume in volumes or ()]}
    gone = Answer(404, {"itemNotFound": {"message": "none", "code": 404}})
    scripted.answers["GET /servers/old"] = (
        gone if volumes is None else Answer(200, {"server": {**server, **attached}})
    )
    scripted.answers["GET /ports"] = Answer(200, {"ports": []})
    scripted.answers["GET /servers/detail"] = Answer(200, {"servers": []})
    scripted.answers["DELETE /servers/old"] = Answer(204)


def test_a_server_that_boots_from_a_volume_is_deleted_before_its_replacement(
    scripted: ScriptedService,
) -> None:
    target = server_with_volume(scripted)
    context = ScriptedContext(scripted)
    assert isinstance(SERVER.prepare_for_replace(target, context), Poll)
    assert deletions(scripted) == ["DELETE /servers/old"]
    has_server(scripted, None)
    assert SERVER.prepare_for_replace(target, context) is None
    with pytest.raises(ReplaceNeeded):
        SERVER.restore_after_replace(target, context)


def test_a_further_volume_is_detached_and_attached_again(scripted: ScriptedService) -> None:
    target = server_with_volume(scripted, boot_index=1)
    context = ScriptedContext(scripted)
    path = "/servers/old/os-volume_attachments"
    scripted.answers[f"DELETE {path}/{VOLUME_ID}"] = Answer(202)
    scripted.answers[f"POST {path}"] = Answer(200, {"volumeAttachment": {"id": "a"}})
    assert isinstance(SERVER.prepare_for_replace(target, context), Poll)
    assert deletions(scripted) == [f"DELETE {path}/{VOLUME_ID}"]
    has_server(scripted, [])
    assert SERVER.prepare_for_replace(target, context) is None
    assert SERVER.restore_after_replace(target, context) is None
    assert f"POST {path}" in scripted.requests


def test_a_volume_that_would_go_with_its_server_is_not_lost(scripted: ScriptedService) -> None:
    target = server_with_volume(scripted, delete_on_termination=True)
    with pytest.raises(PermanentError, match="would be deleted with the server"):
        SERVER.prepare_for_replace(target, ScriptedContext(scripted))
    assert deletions(scripted) == []
