"""Images on a real Glance, which fetches their data from a server of the test's own."""

import dataclasses
import typing
import uuid
from collections.abc import Callable, Iterator

import pytest
from harness.cloud.project import Project
from harness.resource_types import types_of
from harness.scripted_service import Answer, serving
from harness.step_driver import Context, Driven
from harness.waiting import wait_for
from stoker.resources.contract.errors import PermanentError, PropertyError
from stoker.resources.contract.steps import Done, Poll
from stoker.resources.openstack.marks import chosen_id
from stoker.resources.openstack.service import Conflict
from stoker.resources.registry import ResourceRegistry

RESOURCE_TYPES = types_of("openstack.glance")

Json = typing.Any
Make = Callable[..., Driven]
WITHIN = 180.0


@pytest.fixture
def location() -> Iterator[str]:
    """The address of an image's data; below it there is nothing else."""
    with serving() as web:
        web.answers["GET /small.img"] = Answer(200, "no image at all")
        yield f"{web.url}/small.img"


@pytest.fixture
def make(project: Project, location: str) -> Make:
    return _maker(project, location)


@pytest.fixture
def make_as_operator(operator: Project, location: str) -> Make:
    return _maker(operator, location)


def _maker(project: Project, location: str) -> Make:
    return lambda **properties: _new(project, location, properties).create()


def _new(project: Project, location: str, properties: Json) -> Driven:
    values = {"disk_format": "raw", "container_format": "bare", "location": location, **properties}
    return Driven(RESOURCE_TYPES["OS::Glance::WebImage"](), Context(project.connection.session), values)


@pytest.mark.commit
def test_changes_of_an_image(make: Make, project: Project) -> None:
    driven = make(tags=["t"], extra_properties={"a": "b", "number": 1}, min_ram=64)
    image = project.connection.image
    remote = image.get_image(driven.id)
    assert (remote.status, remote.size, remote.name) == ("active", 15, driven.target.physical_name)
    assert (remote.tags, remote.min_ram, remote.properties["number"]) == (["t"], 64, "1")
    assert driven.attribute("show")["a"] == "b"
    assert driven.update(os_distro="debian", os_version="12", architecture="x86_64") == "updated"
    kernel = str(uuid.uuid4())
    assert driven.update(kernel_id=kernel, ramdisk_id=kernel) == "updated"
    assert driven.update(tags=["u", "v"], extra_properties={"c/d": "e"}) == "updated"
    assert driven.update(protected=True) == "updated"
    remote = image.get_image(driven.id)
    assert (remote.os_distro, remote.os_version, remote.architecture) == ("debian", "12", "x86_64")
    assert (remote.kernel_id, remote.ramdisk_id) == (kernel, kernel)
    assert (sorted(remote.tags), remote.is_protected) == (["u", "v"], True)
    assert remote.properties["c/d"] == "e"
    assert "a" not in remote.properties
    live = driven.plugin.live_properties(driven.target, driven.context)
    assert (live["tags"], live["os_distro"], live["protected"]) == (["u", "v"], "debian", True)
    with pytest.raises(PermanentError, match=r"image 403: .*protected.*req-"):
        driven.delete()
    assert driven.update(protected=False, tags=None, os_distro=None) == "updated"
    remote = image.get_image(driven.id)
    assert (remote.tags, remote.is_protected) == ([], False)
    for name, value in (
        ("name", "other"),
        ("id", str(uuid.uuid4())),
        ("min_disk", 1),
        ("min_ram", 128),
        ("disk_format", "qcow2"),
        ("container_format", "ovf"),
        ("location", "http://127.0.0.1/other"),
    ):
        assert driven.update(**{name: value}) == "replace", name
    driven.act("check")
    driven.delete()
    driven.delete()
    with pytest.raises(PermanentError, match="image 404"):
        driven.act("check")


def test_members_of_an_image(make: Make, project: Project, other: Project) -> None:
    image = project.connection.image
    driven = make(visibility="shared", members=[other.id])
    assert [member.member_id for member in image.members(driven.id)] == [other.id]
    assert driven.update(members=["someone"]) == "updated"
    assert [member.member_id for member in image.members(driven.id)] == ["someone"]
    assert driven.update(visibility="private", members=None) == "updated"
    assert image.get_image(driven.id).visibility == "private"
    assert driven.update(visibility="shared", members=[other.id]) == "updated"
    assert [member.member_id for member in image.members(driven.id)] == [other.id]


def test_who_may_do_what_with_an_image(
    make: Make, make_as_operator: Make, operator: Project, project: Project
) -> None:
    driven = make()
    with pytest.raises(PermanentError, match=r"image 403: .*req-"):
        driven.update(visibility="public")
    foreign = make_as_operator(active=False)
    image = operator.connection.image
    assert image.get_image(foreign.id).status == "deactivated"
    assert foreign.attribute("show")["status"] == "deactivated"
    assert foreign.update(active=True, visibility="public") == "updated"
    remote = image.get_image(foreign.id)
    assert (remote.status, remote.visibility) == ("active", "public")
    assert foreign.update(active=False) == "updated"
    assert image.get_image(foreign.id).status == "deactivated"
    assert foreign.update(owner=project.id) == "updated"
    assert image.get_image(foreign.id).owner == project.id
    foreign.delete()


def test_data_that_cannot_be_fetched(project: Project, location: str) -> None:
    missing = _new(project, location, {"location": f"{location}.missing"})
    with pytest.raises(PermanentError, match=r"The service could not fetch http://127.*missing: .*"):
        missing.create()
    # The next update makes another one: this one was not made to the end.
    assert missing.plugin.needs_replace_failed(missing.target, missing.context)
    missing.delete()
    forbidden = _new(project, location, {"location": "ftp://127.0.0.1/x"})
    with pytest.raises(PermanentError, match=r"image 400: .*req-"):
        forbidden.create()
    forbidden.delete()
    assert list(project.connection.image.images(owner=project.id)) == []


@pytest.mark.parametrize("chosen", [True, False])
def test_a_lost_creation_of_an_image_is_found_again(
    make: Make, project: Project, location: str, *, chosen: bool
) -> None:
    properties = {"id": str(uuid.uuid4())} if chosen else {}
    driven = make(**properties)
    assert driven.id == (properties.get("id") or chosen_id(driven.target.key))
    assert "stoker" not in driven.attribute("show")
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) == driven.id
    again = _new(project, location, properties)
    again.target = dataclasses.replace(driven.target, physical_id=None, data={}, attempt=2)
    assert again.create().id == driven.id
    assert len(list(project.connection.image.images(owner=project.id))) == 1
    again.delete()
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) is None


def test_a_conductor_that_dies_between_the_steps(project: Project, location: str) -> None:
    """The import is started once, however often the step is repeated."""
    driven = _new(project, location, {})
    step = driven.plugin.handle_create(driven.target, driven.context)
    assert isinstance(step, Poll)
    driven.target = dataclasses.replace(driven.target, physical_id=step.physical_id, data=step.data or {})
    for _ in range(2):
        driven.plugin.check_create_complete(driven.target, step.progress, driven.context)

    def is_active() -> bool:
        step = driven.plugin.check_create_complete(driven.target, {"since": 0.0}, driven.context)
        return isinstance(step, Done)

    wait_for(is_active, WITHIN, lambda: driven.id)
    tasks = project.connection.image.get(f"/images/{driven.id}/tasks").json()["tasks"]
    assert [task["type"] for task in tasks] == ["api_image_import"]


def test_an_image_of_somebody_else_is_left_alone(project: Project, operator: Project, location: str) -> None:
    foreign = operator.connection.image.create_image(
        name="theirs", data=b"data", disk_format="raw", container_format="bare", visibility="private"
    )
    driven = _new(project, location, {"id": foreign.id})
    driven.target = dataclasses.replace(driven.target, attempt=2)
    with pytest.raises(Conflict, match=r"image 409: .*req-|image 409"):
        driven.create()
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) is None
    driven.delete()
    assert operator.connection.image.get_image(foreign.id).status == "active"


def test_an_image_that_servers_were_made_of_can_be_deleted(make: Make, project: Project) -> None:
    driven = make()
    compute = project.connection.compute
    server = compute.create_server(
        name="user", image_id=driven.id, flavor_id=compute.find_flavor("m1.tiny").id, networks="none"
    )
    compute.wait_for_server(server, wait=WITHIN)
    driven.delete()
    assert list(project.connection.image.images(owner=project.id)) == []


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"container_format": "ami"}, "disk_format must be ami, too"),
        ({"members": ["a"]}, "only where visibility is shared"),
        ({"kernel_id": "no id"}, "kernel_id"),
        ({"disk_format": "paper"}, "disk_format"),
        ({"visibility": "secret"}, "visibility"),
    ],
)
def test_wrong_images(project: Project, location: str, properties: Json, why: str) -> None:
    with pytest.raises(PropertyError, match=why):
        _new(project, location, properties)


def test_the_type_for_the_service_that_is_gone_makes_nothing(project: Project) -> None:
    registry = ResourceRegistry.installed()
    assert "OS::Glance::Image" not in registry.names()
    plugin = registry.get("OS::Glance::Image")
    image = Driven(plugin, Context(project.connection.session), {"name": "n", "location": "http://x"})
    assert image.create().id
    assert list(project.connection.image.images(owner=project.id)) == []
    image.delete()
