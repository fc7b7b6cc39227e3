"""Types of the key manager on a real Barbican; it has no worker here, so orders are in the unit tests."""

import dataclasses
import typing
import uuid
from collections.abc import Callable, Iterator

import pytest
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.step_driver import Driven
from openstack.key_manager.v1._proxy import Proxy
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.steps import Poll

Json = typing.Any
Make = Callable[..., Driven]
pytestmark = pytest.mark.usefixtures("secrets")


@pytest.fixture
def keys(project: Project) -> Iterator[Proxy]:
    """The user's connection; afterwards the project has no secrets."""
    proxy: Proxy = project.connection.key_manager
    yield proxy
    for container in list(proxy.containers()):
        proxy.delete_container(container.container_id)
    for secret in list(proxy.secrets()):
        proxy.delete_secret(secret.secret_id)


@pytest.fixture
def barbican(make: Maker, keys: Proxy) -> Make:
    return lambda kind, /, **properties: make(f"OS::Barbican::{kind}", **properties)


def last(address: str) -> str:
    return address.rpartition("/")[2]


def test_a_secret(barbican: Make, keys: Proxy) -> None:
    secret = barbican("Secret", name="login", payload="hush", payload_content_type="text/plain")
    remote = keys.get_secret(last(secret.id))
    assert (remote.name, remote.payload, secret.id) == ("login", "hush", remote.secret_ref)
    assert (secret.attribute("status"), secret.attribute("decrypted_payload")) == ("ACTIVE", "hush")
    assert "hush" not in str(secret.target.data)
    assert secret.update(payload="other") == "replace"
    secret.act("check")
    secret.delete()
    secret.delete()
    with pytest.raises(PermanentError, match="key-manager 404"):
        secret.act("check")


def test_a_secret_of_bytes(barbican: Make, keys: Proxy) -> None:
    binary = {"payload_content_type": "application/octet-stream", "payload_content_encoding": "base64"}
    secret = barbican("Secret", payload="AAEC", algorithm="aes", bit_length=256, mode="cbc", **binary)
    remote = keys.get_secret(last(secret.id))
    assert (remote.name, remote.bit_length, remote.mode) == (secret.target.physical_name, 256, "cbc")


def test_containers(barbican: Make, keys: Proxy) -> None:
    refs = [barbican("Secret", payload=text, payload_content_type="text/plain").id for text in "abc"]
    generic = barbican("GenericContainer", secrets=[{"name": "one", "ref": refs[0]}])
    assert generic.attribute("secret_refs") == {"one": refs[0]}
    assert (generic.attribute("status"), generic.attribute("container_ref")) == ("ACTIVE", generic.id)
    pair = barbican("RSAContainer", name="pair", private_key_ref=refs[0], public_key_ref=refs[1])
    assert pair.attribute("secret_refs") == {"private_key": refs[0], "public_key": refs[1]}
    certificate = barbican("CertificateContainer", certificate_ref=refs[0], intermediates_ref=refs[2])
    assert certificate.attribute("secret_refs") == {"certificate": refs[0], "intermediates": refs[2]}
    assert {item.type for item in keys.containers()} == {"generic", "rsa", "certificate"}
    for driven in (generic, pair, certificate):
        driven.act("check")
        driven.delete()
        driven.delete()
    assert list(keys.containers()) == []


@pytest.mark.parametrize("kind", ["Secret", "GenericContainer"])
@pytest.mark.parametrize("name", [None, "taken"])
def test_a_lost_creation_is_found_again(make: Maker, barbican: Make, kind: str, name: str | None) -> None:
    """Others may have the same name: which of them had it before is stored first."""
    properties = {} if name is None else {"name": name}
    foreign = barbican(kind, **properties)
    driven = make.new(f"OS::Barbican::{kind}", **properties)
    step = driven.plugin.handle_create(driven.target, driven.context)
    assert isinstance(step, Poll)
    driven.target = dataclasses.replace(driven.target, data=step.data or {})
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) is None
    created = driven.plugin.check_create_complete(driven.target, step.progress, driven.context)
    driven.target = dataclasses.replace(driven.target, attempt=2)
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) == created.physical_id
    again = driven.plugin.check_create_complete(driven.target, step.progress, driven.context)
    assert again.physical_id == created.physical_id != foreign.id
    failed = dataclasses.replace(
        driven.target, physical_id=None, creation_key=driven.target.key, key=str(uuid.uuid4())
    )
    assert driven.plugin.needs_replace_failed(failed, driven.context)
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) is None
    foreign.act("check")
