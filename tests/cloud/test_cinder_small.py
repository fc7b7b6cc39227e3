"""Limits and encryption of volume types, and quotas of volumes, on a real Cinder."""

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from stoker.resources.contract.errors import PermanentError


def test_limits_of_volume_types(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    storage = operator.connection.block_storage
    specs = make("QoSSpecs", specs={"total_iops_sec": "100", "consumer": "both"})
    assert specs.update(specs={"total_iops_sec": 200, "read_iops_sec": "5", "consumer": "both"}) == "updated"
    assert specs.update(specs={"read_iops_sec": "6"}) == "updated"
    assert specs.plugin.live_properties(specs.target, specs.context) == {"specs": {"read_iops_sec": "6"}}
    assert specs.update(name="other") == "replace"
    assert specs.plugin.find_created("key", specs.target, specs.context) == specs.id
    types = [make("VolumeType", name=f"kind-{number}-{operator.name}") for number in range(3)]

    def associated() -> set[str]:
        answer = storage.get(f"/qos-specs/{specs.id}/associations").json()
        return {item["id"] for item in answer["qos_associations"]}

    storage.get(f"/qos-specs/{specs.id}/associate", params={"vol_type_id": types[2].id})
    association = make(
        "QoSAssociation",
        qos_specs=specs.id,
        volume_types=[types[0].id, f"kind-2-{operator.name}"],
    )
    assert associated() == {types[0].id, types[2].id}
    association.act("check")
    assert association.update(volume_types=[types[1].id, types[2].id]) == "updated"
    assert associated() == {types[1].id, types[2].id}
    assert association.update(qos_specs="other") == "replace"
    association.plugin.prepare_for_replace(association.target, association.context)
    assert associated() == {types[2].id}
    association.plugin.restore_after_replace(association.target, association.context)
    assert associated() == {types[1].id, types[2].id}
    association.delete()
    association.delete()
    assert associated() == {types[2].id}  # Somebody else had made this one before.
    specs.delete()
    specs.delete()
    association.delete()
    for volume_type in types:
        volume_type.delete()


def test_changes_of_the_encryption_of_a_volume_type(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    storage = operator.connection.block_storage
    kind = make("VolumeType", name=f"secret-{operator.name}")
    encrypted = make(
        "EncryptedVolumeType", volume_type=f"secret-{operator.name}", provider="luks", key_size=256
    )
    assert encrypted.id == kind.id
    assert encrypted.update(cipher="aes-xts-plain64", key_size=512) == "updated"
    assert encrypted.update(control_location="back-end", provider="plain") == "updated"
    remote = storage.get_type_encryption(kind.id)
    assert (remote.cipher, remote.key_size) == ("aes-xts-plain64", 512)
    assert (remote.control_location, remote.provider) == ("back-end", "plain")
    assert encrypted.attribute("show")["key_size"] == 512
    assert encrypted.update(volume_type="other") == "replace"
    with pytest.raises(PermanentError, match="block-storage 4"):
        make("EncryptedVolumeType", volume_type=kind.id, provider="luks")
    encrypted.act("check")
    encrypted.delete()
    encrypted.delete()
    with pytest.raises(PermanentError, match="has no encryption"):
        encrypted.act("check")
    kind.delete()
    encrypted.delete()


def test_limits_of_a_project(make_as_operator: Maker, operator: Project) -> None:
    make = make_as_operator
    storage = operator.connection.block_storage
    quota = make("OS::Cinder::Quota", project=operator.id, volumes=5, gigabytes=-1)
    assert storage.get_quota_set(operator.id).volumes == 5
    volume = make("Volume", size=2)
    assert quota.update(gigabytes=2) == "updated"
    with pytest.raises(PermanentError, match="Invalid quota gigabytes: 1 is less than the 2 that"):
        quota.update(gigabytes=1)
    volume.delete()
    quota.delete()
    quota.delete()
    assert storage.get_quota_set(operator.id).volumes == -1
