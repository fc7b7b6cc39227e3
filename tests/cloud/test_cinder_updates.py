"""Volumes on a real Cinder: changes of each property, their users, and lost creations."""

import dataclasses
import typing

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.step_driver import Driven
from harness.waiting import wait_for
from stoker.resources.contract.errors import PermanentError, PropertyError, RetryableError
from stoker.resources.contract.steps import Poll
from stoker.resources.openstack.marks import mark_of

Json = typing.Any
WITHIN = 180.0


def _server(project: Project) -> Json:
    """A server that the witness makes."""
    compute = project.connection.compute
    server = compute.create_server(
        name="user",
        flavor_id=compute.find_flavor("m1.tiny").id,
        image_id=project.connection.image.find_image("cirros").id,
        networks="none",
    )
    return compute.wait_for_server(server, wait=WITHIN)


def _use(project: Project, server: Json, volume: str) -> None:
    """Let the witness attach a volume."""
    project.connection.compute.create_volume_attachment(server, volume_id=volume)
    _wait_for_status(project, volume, "in-use")


def _wait_for_status(project: Project, volume: str, status: str) -> None:
    storage = project.connection.block_storage
    wait_for(lambda: storage.get_volume(volume).status == status, WITHIN, lambda: storage.get_volume(volume))


def _marks(project: Project) -> list[str]:
    return [volume.metadata.get("stoker") for volume in project.connection.block_storage.volumes()]


def test_changes_of_a_volume(make: Maker, project: Project) -> None:
    volume = make("Volume", size=1, metadata={"a": "b"}, description="first")
    storage = project.connection.block_storage
    assert storage.get_volume(volume.id).name == volume.target.physical_name
    assert volume.update(size=2) == "updated"
    assert volume.update(name="blue", description="second") == "updated"
    assert volume.update(metadata={"x": "y"}) == "updated"
    assert volume.update(read_only=True) == "updated"
    remote = storage.get_volume(volume.id)
    assert (remote.size, remote.name, remote.description) == (2, "blue", "second")
    assert remote.metadata == {"x": "y", "readonly": "True", "stoker": mark_of(volume.target.creation_key)}
    assert volume.update(read_only=False) == "updated"
    assert storage.get_volume(volume.id).metadata["readonly"] == "False"
    assert volume.update(name=None, description=None) == "updated"
    remote = storage.get_volume(volume.id)
    assert remote.name.endswith(volume.target.creation_key.replace("-", "")[:12])
    assert not remote.description
    for name, value in (
        ("availability_zone", "other"),
        ("snapshot_id", "other"),
        ("image", "other"),
        ("source_volid", "other"),
        ("scheduler_hints", {"same_host": "x"}),
    ):
        assert volume.update(**{name: value}) == "replace", name
    with pytest.raises(PermanentError, match="Shrinking volume is not supported"):
        volume.update(size=1)


def test_several_changes_of_a_volume_at_once(make: Maker, operator: Project, project: Project) -> None:
    storage = operator.connection.block_storage
    kind = storage.create_type(name=f"kind-{project.name}")
    try:
        volume = make("Volume", size=1)
        assert volume.update(size=3, volume_type=kind.name, read_only=True, metadata={"a": "b"}) == "updated"
        remote = project.connection.block_storage.get_volume(volume.id)
        assert (remote.size, remote.volume_type, remote.metadata["readonly"]) == (3, kind.name, "True")
        assert (volume.attribute("size"), volume.attribute("volume_type")) == ("3", kind.name)
        assert volume.update(volume_type="standard") == "updated"
        assert project.connection.block_storage.get_volume(volume.id).volume_type == "standard"
        volume.delete()
    finally:
        storage.delete_type(kind)


def test_a_volume_that_a_server_has_changes_and_is_attached_again(make: Maker, project: Project) -> None:
    server = _server(project)
    volume = make("Volume", size=1)
    _use(project, server, volume.id)
    storage = project.connection.block_storage
    assert volume.update(read_only=True, size=2) == "updated"
    remote = storage.get_volume(volume.id)
    assert (remote.status, remote.size, remote.metadata["readonly"]) == ("in-use", 2, "True")
    assert [item["server_id"] for item in remote.attachments] == [server.id]
    assert [item["server_id"] for item in volume.attribute("attachments_list")] == [server.id]


def test_an_attribute_shows_what_the_template_gave(make: Maker) -> None:
    volume = make("Volume", size=1, metadata={"a": "b"}, name="n", description="d")
    assert (volume.attribute("metadata"), volume.attribute("metadata_values")) == ('{"a": "b"}', {"a": "b"})
    assert (volume.attribute("size"), volume.attribute("bootable")) == ("1", "false")
    assert (volume.attribute("display_name"), volume.attribute("display_description")) == ("n", "d")
    assert volume.attribute("attachments_list") == []
    assert volume.attribute("show")["metadata"] == {"a": "b"}
    live = volume.plugin.live_properties(volume.target, volume.context)
    assert (live["metadata"], live["size"], live["name"]) == ({"a": "b"}, 1, "n")


def test_volumes_begin_with_something_else(make: Maker, project: Project) -> None:
    storage = project.connection.block_storage
    image = project.connection.image.find_image("cirros")
    with_image = make("Volume", size=1, image="cirros")
    assert storage.get_volume(with_image.id).volume_image_metadata["image_id"] == image.id
    snapshot = storage.wait_for_status(
        storage.create_snapshot(volume_id=with_image.id, name=f"snapshot-{project.name}"), "available"
    )
    of_snapshot = make("Volume", snapshot_id=snapshot.name)
    assert storage.get_volume(of_snapshot.id).snapshot_id == snapshot.id
    assert of_snapshot.attribute("size") == "1"
    copy = make("Volume", source_volid=with_image.id, size=2)
    assert storage.get_volume(copy.id).source_volume_id == with_image.id
    plugin = with_image.plugin
    target = with_image.target
    with pytest.raises(RetryableError, match=f"still in use by snapshot {snapshot.id}: block-storage 400"):
        plugin.handle_delete(target, with_image.context)
    storage.delete_snapshot(snapshot)
    of_snapshot.delete()
    with_image.delete()
    assert [volume.id for volume in storage.volumes()] == [copy.id]


def test_a_backup_is_the_snapshot_of_a_volume(make: Maker, project: Project) -> None:
    volume = make("Volume", size=1, image="cirros")
    storage = project.connection.block_storage
    data = volume.target.data
    volume.act("snapshot")
    backup = volume.target.data["backup_id"]
    assert storage.get_backup(backup).status == "available"
    assert volume.plugin.handle_restore(volume.target.properties, volume.target.data) == {"backup_id": backup}
    snapshot_view = dataclasses.replace(volume.target, data=data)
    again = volume.plugin.handle_snapshot(snapshot_view, volume.context)
    assert isinstance(again, Poll)
    assert again.data == {"backup_id": backup}
    assert volume.update(backup_id=backup) == "updated"
    new = make("Volume", backup_id=backup, read_only=True)
    remote = storage.get_volume(new.id)
    assert (remote.status, remote.size, remote.metadata["readonly"]) == ("available", 1, "True")
    volume.target = snapshot_view
    volume.act("delete_snapshot")
    assert list(storage.backups()) == []
    volume.act("delete_snapshot")


def test_a_backup_is_restored_into_a_volume_that_a_server_has(make: Maker, project: Project) -> None:
    server = _server(project)
    volume = make("Volume", size=1)
    _use(project, server, volume.id)
    volume.act("snapshot")
    assert volume.update(backup_id=volume.target.data["backup_id"]) == "updated"
    remote = project.connection.block_storage.get_volume(volume.id)
    assert (remote.status, [item["server_id"] for item in remote.attachments]) == ("in-use", [server.id])


def test_a_volume_is_deleted_once_no_server_has_it(make: Maker, project: Project) -> None:
    server = _server(project)
    volume = make("Volume", size=1)
    _use(project, server, volume.id)
    with pytest.raises(RetryableError, match=f"still in use by server {server.id}"):
        volume.plugin.handle_delete(volume.target, volume.context)
    project.connection.compute.delete_server(server)
    volume.delete()
    volume.delete()
    assert list(project.connection.block_storage.volumes()) == []


def test_a_volume_that_somebody_has_deleted(make: Maker, project: Project) -> None:
    volume = make("Volume", size=1)
    volume.act("check")
    assert not volume.plugin.needs_replace_failed(volume.target, volume.context)
    project.connection.block_storage.delete_volume(volume.id)
    wait_for(lambda: not list(project.connection.block_storage.volumes()), WITHIN, lambda: volume.id)
    with pytest.raises(PermanentError, match=r"block-storage 404: .*req-"):
        volume.act("check")
    assert volume.plugin.needs_replace_failed(volume.target, volume.context)
    with pytest.raises(PermanentError, match=r"block-storage 404: .*req-"):
        volume.update(size=2)
    volume.delete()


def test_a_lost_creation_of_a_volume_is_found_again(make: Maker, project: Project) -> None:
    """Two steps have made a volume each; the third finds the older one, and the other one is deleted."""
    first = make("Volume", size=1)
    storage = project.connection.block_storage
    plugin = first.plugin
    context = first.context
    target = first.target
    assert plugin.find_created(target.key, target, context) == first.id
    assert plugin.find_created("another", target, context) is None
    mark = {"stoker": mark_of(target.key)}
    double = storage.create_volume(size=1, metadata=mark)
    _wait_for_status(project, double.id, "available")
    again = Driven(plugin, context, {"size": 1})
    again.target = dataclasses.replace(target, attempt=3, data={})
    again.create()
    assert again.id == first.id
    wait_for(lambda: _marks(project) == [mark["stoker"]], WITHIN, lambda: _marks(project))
    late = storage.create_volume(size=1, metadata=mark)
    foreign = storage.create_volume(size=1, name="of somebody else")
    again.delete()
    wait_for(lambda: late.id not in {item.id for item in storage.volumes()}, WITHIN, lambda: _marks(project))
    assert [volume.id for volume in storage.volumes()] == [foreign.id]


def test_what_a_lost_creation_made_is_deleted_without_an_answer(make: Maker, project: Project) -> None:
    """No step has stored anything but the key; two volumes were made."""
    first = make("Volume", size=1)
    storage = project.connection.block_storage
    storage.create_volume(size=1, metadata={"stoker": mark_of(first.target.key)})
    first.target = dataclasses.replace(first.target, data={})
    first.delete()
    wait_for(lambda: not list(storage.volumes()), WITHIN, lambda: _marks(project))


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({"size": 1, "image": "nothing"}, r"The Image \(nothing\) could not be found"),
        ({"size": 1, "volume_type": "nothing"}, r"The VolumeType \(nothing\) could not be found"),
        ({"snapshot_id": "nothing"}, r"The VolumeSnapshot \(nothing\) could not be found"),
        ({"backup_id": "nothing"}, r"The Volume backup \(nothing\) could not be found"),
        ({"source_volid": "0a0b0c0d-0000-4000-8000-000000000000"}, r"block-storage 404: .*req-"),
        ({"size": 1, "availability_zone": "moon"}, r"block-storage 400: .*moon.*req-"),
        ({"size": 1, "metadata": {"key": "x" * 256}}, r"block-storage 400: .*req-"),
    ],
)
def test_wrong_properties_of_a_volume(make: Maker, project: Project, properties: Json, why: str) -> None:
    with pytest.raises(PermanentError, match=why):
        make("Volume", **properties)
    assert list(project.connection.block_storage.volumes()) == []


@pytest.mark.parametrize(
    ("properties", "why"),
    [
        ({}, "size is needed"),
        ({"image": "cirros"}, "size is needed"),
        ({"snapshot_id": "a", "source_volid": "b"}, "snapshot_id and source_volid exclude each other"),
        ({"size": 0}, "size"),
    ],
)
def test_properties_that_no_volume_has(make: Maker, properties: Json, why: str) -> None:
    with pytest.raises(PropertyError, match=why):
        make.new("Volume", **properties)


def test_a_volume_of_another_project(make: Maker, other: Project) -> None:
    foreign = Maker(other)("Volume", size=1)
    with pytest.raises(PermanentError, match=r"block-storage 404: .*req-"):
        make("Volume", source_volid=foreign.id)
    own_volume = make("Volume", size=1)
    own_volume.target = dataclasses.replace(own_volume.target, physical_id=foreign.id)
    own_volume.delete()
    assert [volume.id for volume in other.connection.block_storage.volumes()] == [foreign.id]


def test_a_volume_over_the_quota_waits(make: Maker, project: Project) -> None:
    admin = project.admin.block_storage
    storage = project.connection.block_storage
    admin.update_quota_set(project.id, volumes=0)
    volume = make.new("Volume", size=1)
    with pytest.raises(RetryableError, match=r"over the quota: block-storage 413: .*req-") as caught:
        volume.plugin.handle_create(volume.target, volume.context)
    assert caught.value.after == 20.0
    admin.update_quota_set(project.id, volumes=-1)
    volume.create()
    assert [item.id for item in storage.volumes()] == [volume.id]


def test_a_volume_is_adopted(make: Maker, project: Project) -> None:
    storage = project.connection.block_storage
    foreign = storage.create_volume(size=1)
    _wait_for_status(project, foreign.id, "available")
    volume = make.new("Volume", size=1)
    volume.target = dataclasses.replace(volume.target, physical_id=foreign.id, creation_key="")
    volume.act("adopt")
    assert volume.attribute("size") == "1"
    assert volume.update(size=2) == "updated"
    volume.act("suspend").act("resume")
    volume.delete()
    assert list(storage.volumes()) == []


def test_changes_of_an_attachment(make: Maker, project: Project) -> None:
    server = _server(project)
    second_server = _server(project)
    first = make("Volume", size=1)
    second = make("Volume", size=1)
    storage = project.connection.block_storage

    def users(volume: Driven) -> list[str]:
        return [item["server_id"] for item in storage.get_volume(volume.id).attachments]

    attachment = make("VolumeAttachment", instance_uuid=server.id, volume_id=first.id, mountpoint="/dev/vdc")
    assert (attachment.id, users(first)) == (first.id, [server.id])
    assert attachment.attribute("show")["serverId"] == server.id
    attachment.act("check")
    assert attachment.update(instance_uuid=second_server.id) == "updated"
    assert users(first) == [second_server.id]
    assert attachment.update(volume_id=second.id) == "updated"
    assert (attachment.id, users(first), users(second)) == (second.id, [], [second_server.id])
    assert attachment.update(mountpoint="/dev/vdd") == "updated"
    assert users(second) == [second_server.id]
    assert attachment.update(instance_uuid=server.id, volume_id=first.id, mountpoint=None) == "updated"
    assert (users(first), users(second)) == ([server.id], [])
    attachment.delete()
    attachment.delete()
    assert users(first) == []


def test_an_attachment_that_somebody_has_ended(make: Maker, project: Project) -> None:
    server = _server(project)
    volume = make("Volume", size=1)
    attachment = make("VolumeAttachment", instance_uuid=server.id, volume_id=volume.id)
    project.connection.compute.delete_volume_attachment(server, volume.id)
    _wait_for_status(project, volume.id, "available")
    with pytest.raises(PermanentError, match=f"{volume.id} is not attached to server {server.id}"):
        attachment.act("check")
    assert attachment.plugin.needs_replace_failed(attachment.target, attachment.context)
    attachment.delete()
    again = make("VolumeAttachment", instance_uuid=server.id, volume_id=volume.id)
    project.connection.compute.delete_server(server)
    wait_for(lambda: not list(project.connection.compute.servers()), WITHIN, lambda: server.id)
    again.delete()
    assert project.connection.block_storage.get_volume(volume.id).status == "available"


def test_a_lost_attachment_is_found_again(make: Maker, project: Project) -> None:
    server = _server(project)
    volume = make("Volume", size=1)
    properties = {"instance_uuid": server.id, "volume_id": volume.id}
    lost = make.new("VolumeAttachment", **properties)
    claim = lost.plugin.handle_create(lost.target, lost.context)
    lost.take(claim)
    lost.plugin.check_create_complete(lost.target, claim.progress, lost.context)
    assert lost.plugin.find_created("key", lost.target, lost.context) == volume.id
    another = make.new("VolumeAttachment", **properties)
    with pytest.raises(PermanentError, match="compute 400"):
        another.create()
    assert another.plugin.find_created("key", another.target, another.context) is None
    lost.create()
    assert lost.id == volume.id
    lost.delete()


def test_wrong_attachments(make: Maker, project: Project) -> None:
    server = _server(project)
    volume = make("Volume", size=1)
    nothing = "0a0b0c0d-0000-4000-8000-000000000000"
    for properties, why in (
        ({"instance_uuid": "nothing", "volume_id": volume.id}, r"The Server \(nothing\) could not be found"),
        ({"instance_uuid": server.id, "volume_id": "nothing"}, r"The Volume \(nothing\) could not be found"),
        ({"instance_uuid": nothing, "volume_id": volume.id}, r"compute 404: .*req-"),
        ({"instance_uuid": server.id, "volume_id": nothing}, r"compute 404: .*req-"),
    ):
        attachment = make.new("VolumeAttachment", **properties)
        with pytest.raises(PermanentError, match=why):
            attachment.create()
        assert attachment.plugin.find_created("key", attachment.target, make.context) is None
        attachment.delete()
    _use(project, server, volume.id)
    with pytest.raises(PermanentError, match=r"compute 400: .*req-"):
        make("VolumeAttachment", instance_uuid=_server(project).id, volume_id=volume.id)


def test_changes_of_a_volume_type(make_as_operator: Maker, operator: Project, project: Project) -> None:
    storage = operator.connection.block_storage
    name = f"kind-{project.name}"
    kind = make_as_operator("VolumeType", name=name, metadata={"k": "v"}, description="one")
    volume_type = storage.get_type(kind.id)
    assert (volume_type.name, volume_type.description, volume_type.extra_specs) == (name, "one", {"k": "v"})
    assert kind.update(name=f"{name}-2", description="two") == "updated"
    assert kind.update(metadata={"l": "w"}) == "updated"
    volume_type = storage.get_type(kind.id)
    assert (volume_type.name, volume_type.description, volume_type.extra_specs) == (
        f"{name}-2",
        "two",
        {"l": "w"},
    )
    assert kind.update(metadata=None) == "updated"
    assert storage.get_type(kind.id).extra_specs == {}
    assert kind.update(is_public=False, projects=[project.name]) == "updated"
    volume_type = storage.get_type(kind.id)
    assert not volume_type.is_public
    assert [item["project_id"] for item in storage.get_type_access(kind.id)] == [project.id]
    assert kind.update(projects=[operator.id]) == "updated"
    assert [item["project_id"] for item in storage.get_type_access(kind.id)] == [operator.id]
    assert kind.update(is_public=True, projects=None) == "updated"
    assert storage.get_type(kind.id).is_public
    with pytest.raises(PropertyError, match="projects can be given only where is_public is false"):
        kind.update(projects=[project.id])
    kind.act("check")
    kind.delete()
    kind.delete()
    with pytest.raises(PermanentError, match="block-storage 404"):
        kind.act("check")


@pytest.mark.parametrize("is_public", [True, False])
def test_a_lost_creation_of_a_volume_type_is_found_again(
    make_as_operator: Maker, operator: Project, *, is_public: bool
) -> None:
    kind = make_as_operator("VolumeType", name=f"kind-{operator.name}", is_public=is_public)
    lost = dataclasses.replace(kind.target, physical_id=None, data={}, attempt=2)
    assert kind.plugin.find_created(lost.key, lost, kind.context) == kind.id
    assert kind.plugin.find_created("another", lost, kind.context) is None
    kind.target = lost
    kind.create()
    assert kind.target.physical_id is not None
    kind.delete()


def test_users_make_no_volume_types(make: Maker, project: Project) -> None:
    with pytest.raises(PermanentError, match=r"block-storage 403: .*req-"):
        make("VolumeType", name=f"kind-{project.name}")
