"""Images on a real Glance, which fetches their data from a server of the test's own."""

import dataclasses
import typing
import uuid
from collections.abc import Callable, Iterator

import pytest
from harness.cloud.project import Project
from harness.scripted_service import Answer, serving
from harness.step_driver import Context, Driven
from harness.waiting import wait_for
from stoker.resources.errors import PermanentError, PropertyError
from stoker.resources.openstack.glance.registry import RESOURCE_TYPES
from stoker.resources.openstack.marks import chosen_id
from stoker.resources.openstack.service import Conflict
from stoker.resources.registry import ResourceRegistry
from stoker.resources.steps import Done, Poll

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
    given = {"disk_format": "raw", "container_format": "bare", "location": location, **properties}
    return Driven(RESOURCE_TYPES["OS::Glance::WebImage"](), Context(project.connection.session), given)


@pytest.mark.commit
def test_changes_of_an_image(make: Make, project: Project) -> None:
    made = make(tags=["t"], extra_properties={"a": "b", "number": 1}, min_ram=64)
    image = project.connection.image
    found = image.get_image(made.id)
    assert (found.status, found.size, found.name) == ("active", 15, made.target.physical_name)
    assert (found.tags, found.min_ram, found.properties["number"]) == (["t"], 64, "1")
    assert made.attribute("show")["a"] == "b"
    assert made.update(os_distro="debian", os_version="12", architecture="x86_64") == "updated"
    kernel = str(uuid.uuid4())
    assert made.update(kernel_id=kernel, ramdisk_id=kernel) == "updated"
    assert made.update(tags=["u", "v"], extra_properties={"c/d": "e"}) == "updated"
    assert made.update(protected=True) == "updated"
    found = image.get_image(made.id)
    assert (found.os_distro, found.os_version, found.architecture) == ("debian", "12", "x86_64")
    assert (found.kernel_id, found.ramdisk_id) == (kernel, kernel)
    assert (sorted(found.tags), found.is_protected) == (["u", "v"], True)
    assert found.properties["c/d"] == "e"
    assert "a" not in found.properties
    live = made.plugin.live_properties(made.target, made.work)
    assert (live["tags"], live["os_distro"], live["protected"]) == (["u", "v"], "debian", True)
    with pytest.raises(PermanentError, match=r"image 403: .*protected.*req-"):
        made.delete()
    assert made.update(protected=False, tags=None, os_distro=None) == "updated"
    found = image.get_image(made.id)
    assert (found.tags, found.is_protected) == ([], False)
    for name, value in (
        ("name", "other"),
        ("id", str(uuid.uuid4())),
        ("min_disk", 1),
        ("min_ram", 128),
        ("disk_format", "qcow2"),
        ("container_format", "ovf"),
        ("location", "http://127.0.0.1/other"),
    ):
        assert made.update(**{name: value}) == "replace", name
    made.act("check")
    made.delete()
    made.delete()
    with pytest.raises(PermanentError, match="image 404"):
        made.act("check")


def test_members_of_an_image(make: Make, project: Project, other: Project) -> None:
    image = project.connection.image
    made = make(visibility="shared", members=[other.id])
    assert [member.member_id for member in image.members(made.id)] == [other.id]
    assert made.update(members=["someone"]) == "updated"
    assert [member.member_id for member in image.members(made.id)] == ["someone"]
    assert made.update(visibility="private", members=None) == "updated"
    assert image.get_image(made.id).visibility == "private"
    assert made.update(visibility="shared", members=[other.id]) == "updated"
    assert [member.member_id for member in image.members(made.id)] == [other.id]


def test_who_may_do_what_with_an_image(
    make: Make, make_as_operator: Make, operator: Project, project: Project
) -> None:
    made = make()
    with pytest.raises(PermanentError, match=r"image 403: .*req-"):
        made.update(visibility="public")
    theirs = make_as_operator(active=False)
    image = operator.connection.image
    assert image.get_image(theirs.id).status == "deactivated"
    assert theirs.attribute("show")["status"] == "deactivated"
    assert theirs.update(active=True, visibility="public") == "updated"
    found = image.get_image(theirs.id)
    assert (found.status, found.visibility) == ("active", "public")
    assert theirs.update(active=False) == "updated"
    assert image.get_image(theirs.id).status == "deactivated"
    assert theirs.update(owner=project.id) == "updated"
    assert image.get_image(theirs.id).owner == project.id
    theirs.delete()


def test_data_that_cannot_be_fetched(project: Project, location: str) -> None:
    missing = _new(project, location, {"location": f"{location}.missing"})
    with pytest.raises(PermanentError, match=r"The service could not fetch http://127.*missing: .*"):
        missing.create()
    # The next update makes another one: this one was not made to the end.
    assert missing.plugin.needs_replace_failed(missing.target, missing.work)
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
    made = make(**properties)
    assert made.id == (properties.get("id") or chosen_id(made.target.key))
    assert "stoker" not in made.attribute("show")
    assert made.plugin.find_created(made.target.key, made.target, made.work) == made.id
    again = _new(project, location, properties)
    again.target = dataclasses.replace(made.target, physical_id=None, data={}, attempt=2)
    assert again.create().id == made.id
    assert len(list(project.connection.image.images(owner=project.id))) == 1
    again.delete()
    assert made.plugin.find_created(made.target.key, made.target, made.work) is None


def test_a_conductor_that_dies_between_the_steps(project: Project, location: str) -> None:
    """The import is started once, however often the step is repeated."""
    made = _new(project, location, {})
    step = made.plugin.handle_create(made.target, made.work)
    assert isinstance(step, Poll)
    made.target = dataclasses.replace(made.target, physical_id=step.physical_id, data=step.data or {})
    for _ in range(2):
        made.plugin.check_create_complete(made.target, step.progress, made.work)

    def is_active() -> bool:
        found = made.plugin.check_create_complete(made.target, {"since": 0.0}, made.work)
        return isinstance(found, Done)

    wait_for(is_active, WITHIN, lambda: made.id)
    tasks = project.connection.image.get(f"/images/{made.id}/tasks").json()["tasks"]
    assert [task["type"] for task in tasks] == ["api_image_import"]


def test_an_image_of_somebody_else_is_left_alone(project: Project, operator: Project, location: str) -> None:
    theirs = operator.connection.image.create_image(
        name="theirs", data=b"data", disk_format="raw", container_format="bare", visibility="private"
    )
    made = _new(project, location, {"id": theirs.id})
    made.target = dataclasses.replace(made.target, attempt=2)
    with pytest.raises(Conflict, match=r"image 409: .*req-|image 409"):
        made.create()
    assert made.plugin.find_created(made.target.key, made.target, made.work) is None
    made.delete()
    assert operator.connection.image.get_image(theirs.id).status == "active"


def test_an_image_that_servers_were_made_of_can_be_deleted(make: Make, project: Project) -> None:
    made, compute = make(), project.connection.compute
    server = compute.create_server(
        name="user", image_id=made.id, flavor_id=compute.find_flavor("m1.tiny").id, networks="none"
    )
    compute.wait_for_server(server, wait=WITHIN)
    made.delete()
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
