"""Types of the object storage service on a real Swift."""

import dataclasses
import json
import threading
import typing
import uuid
from collections.abc import Callable, Iterator

import pytest
import requests
from harness.cloud.maker import Maker
from harness.cloud.project import Project
from harness.step_driver import Driven
from openstack.object_store.v1._proxy import Proxy
from stoker.resources.contract.errors import PermanentError
from stoker.resources.contract.views import ReplacementView
from stoker.resources.openstack.service import Conflict, Service

Json = typing.Any
Make = Callable[..., Driven]
pytestmark = pytest.mark.usefixtures("objects")


@pytest.fixture
def store(project: Project) -> Iterator[Proxy]:
    """The user's connection; afterwards the account is empty."""
    proxy: Proxy = project.connection.object_store
    yield proxy
    for container in proxy.containers():
        for item in proxy.objects(container):
            proxy.delete_object(item, container=container)
        proxy.delete_container(container)


@pytest.fixture
def container(make: Maker, store: Proxy) -> Make:
    return lambda **properties: make("OS::Swift::Container", **properties)


def names(store: Proxy) -> list[str]:
    return [item.name for item in store.containers()]


def test_a_container(container: Make, store: Proxy, project: Project) -> None:
    metadata = {"colour": "blue", "two_words": "a b"}
    made_of = {"X-Container-Read": ".r:*", "X-Container-Meta": metadata, "X-Account-Meta": {"Team": "t"}}
    driven = container(**made_of)
    remote = store.get_container_metadata(driven.id)
    assert (driven.id, remote.read_ACL) == (driven.target.physical_name, ".r:*")
    headers = store.head(f"/{driven.id}").headers
    assert (headers["X-Container-Meta-Colour"], headers["X-Container-Meta-Two-Words"]) == ("blue", "a b")
    assert store.head("/").headers["X-Account-Meta-Team"] == "t"
    url = project.connection.object_store.get_endpoint()
    assert (
        driven.attribute("WebsiteURL") == f"{driven.attribute('RootURL')}/{driven.id}" == f"{url}/{driven.id}"
    )
    assert driven.attribute("DomainName") == "127.0.0.1"
    assert "x-container-meta-stoker" not in driven.attribute("HeadContainer")

    store.upload_object(container=driven.id, name="note", data=b"hello")
    driven.target = dataclasses.replace(
        driven.target, data=driven.plugin.refresh(driven.target, driven.context)
    )
    assert (driven.attribute("ObjectCount"), driven.attribute("BytesUsed")) == (1, 5)
    with pytest.raises(PermanentError, match=r"Deleting non-empty container .* when PurgeOnDelete is False"):
        driven.delete()
    store.delete_object("note", container=driven.id)
    driven.act("check")
    driven.delete()
    driven.delete()
    assert names(store) == []
    with pytest.raises(PermanentError, match="object-store 404"):
        driven.act("check")


def test_objects_are_deleted_with_their_container(container: Make, store: Proxy) -> None:
    driven = container(name="purged one", PurgeOnDelete=True)
    for number in range(3):
        store.upload_object(container=driven.id, name=f"a/b {number}", data=b"x")
    driven.delete()
    assert names(store) == []


def test_a_container_of_somebody_else_is_left_alone(container: Make, store: Proxy, make: Maker) -> None:
    store.create_container("theirs")
    with pytest.raises(Conflict, match="another container has the name theirs"):
        container(name="theirs")
    driven = make.new("OS::Swift::Container", name="theirs")
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) is None
    driven.delete()
    assert names(store) == ["theirs"]


def test_a_lost_creation_is_found_again(container: Make, store: Proxy) -> None:
    driven = container(name="lost")
    driven.target = dataclasses.replace(driven.target, physical_id=None, data={}, attempt=2)
    assert driven.plugin.find_created(driven.target.key, driven.target, driven.context) == "lost"
    assert driven.plugin.find_created(str(uuid.uuid4()), driven.target, driven.context) is None
    driven.create()
    assert names(store) == ["lost"]


def test_a_replacement_of_the_same_name_takes_the_container_over(
    container: Make, store: Proxy, make: Maker
) -> None:
    old = container(name="data", **{"X-Container-Meta": {"colour": "blue", "old": "1"}})
    store.upload_object(container="data", name="note", data=b"hello")
    new = make.new("OS::Swift::Container", name="data", **{"X-Container-Meta": {"colour": "red"}})
    new.target = dataclasses.replace(new.target, stack=old.target.stack)
    new.create()
    headers = store.head("/data").headers
    assert headers["X-Container-Meta-Colour"] == "red"
    assert "X-Container-Meta-Old" not in headers
    old.context.replaced_by = ReplacementView(old.target.type, new.target.key, new.id)
    old.delete()
    assert [item.name for item in store.objects("data")] == ["note"]
    old.plugin.restore_after_replace(old.target, old.context)
    headers = store.head("/data").headers
    assert (headers["X-Container-Meta-Colour"], headers["X-Container-Meta-Old"]) == ("blue", "1")


@pytest.mark.parametrize(
    ("access", "read", "write"),
    [
        (None, "{project}:{user}", "{project}:{user}"),
        ("PublicRead", ".r:*", "{project}:{user}"),
        ("PublicReadWrite", ".r:*", "*:*"),
        ("AuthenticatedRead", "{project}:*", "{project}:{user}"),
    ],
)
def test_a_bucket(
    make: Maker, store: Proxy, project: Project, access: str | None, read: str, write: str
) -> None:
    properties: Json = {
        "Tags": [{"Key": "tier", "Value": "web"}],
        "WebsiteConfiguration": {"IndexDocument": "i"},
    }
    driven = make("AWS::S3::Bucket", **properties, **({"AccessControl": access} if access else {}))
    headers = store.head(f"/{driven.id}").headers
    values = {"project": project.id, "user": project.user_id}
    assert headers["X-Container-Read"] == read.format(**values)
    assert headers["X-Container-Write"] == write.format(**values)
    assert (headers["X-Container-Meta-S3-Tag-Tier"], headers["X-Container-Meta-Web-Index"]) == ("web", "i")
    store.upload_object(container=driven.id, name="note", data=b"hello")
    with pytest.raises(PermanentError, match="The bucket you tried to delete is not empty"):
        driven.delete()


@pytest.fixture
def handle(make: Maker, store: Proxy) -> Driven:
    return make("OS::Heat::SwiftSignalHandle")


@pytest.fixture
def signal(make: Maker, handle: Driven) -> Make:
    """Makes a signal of the handle's stack that waits for it."""

    def new(**properties: Json) -> Driven:
        address = handle.plugin.reference_id(handle.target)
        driven = make.new("OS::Heat::SwiftSignal", **{"handle": address, "timeout": 120, **properties})
        driven.target = dataclasses.replace(driven.target, stack=handle.target.stack)
        return driven

    return new


def send(handle: Driven, body: str = "") -> None:
    """Signal as a guest does, without a token."""
    answer = requests.put(handle.attribute("endpoint"), data=body, timeout=60)
    assert answer.status_code == 201, answer.text


def test_signals_end_a_wait(handle: Driven, signal: Make, store: Proxy) -> None:
    condition = signal(count=3)
    thread = threading.Thread(target=condition.create)
    thread.start()
    for body in ("", '{"id": "one", "data": "first"}', '{"id": "one", "data": 1}', '{"reason": "ready"}'):
        send(handle, body)
    thread.join()
    assert json.loads(condition.attribute("data")) == {"1": None, "one": 1, "3": None}
    assert handle.attribute("curl_cli") == f"curl -i -X PUT '{handle.attribute('endpoint')}'"
    handle.act("check")
    handle.delete()
    handle.delete()
    assert names(store) == []


def test_a_signal_that_comes_while_others_are_read_replaces_none(
    handle: Driven, signal: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = ['{"id": "last"}']

    def get_text(service: Service, path: str) -> str:
        if late and path.endswith(f"/{handle.id}"):
            send(handle, late.pop())
        return read(service, path)

    read = Service.get_text
    monkeypatch.setattr(Service, "get_text", get_text)
    send(handle, '{"id": "first"}')
    send(handle, '{"id": "second"}')
    condition = signal(count=2)
    condition.create()
    assert json.loads(condition.attribute("data")) == {"first": None, "second": None, "last": None}
    assert late == []


@pytest.mark.parametrize(
    ("bodies", "why"),
    [
        (['{"status": "FAILURE", "reason": "broken"}'], "^broken$"),
        (["no JSON"], "Failed to parse JSON data: no JSON"),
        (['{"status": "PERHAPS"}'], "Unknown status: PERHAPS"),
        (['{"reason": "half"}'], "1 of 2 received - half"),
        ([], "^0 of 2 received$"),
    ],
)
def test_a_wait_fails(handle: Driven, signal: Make, bodies: list[str], why: str) -> None:
    for body in bodies:
        send(handle, body)
    with pytest.raises(PermanentError, match=why):
        signal(count=2, timeout=1).create()


def test_handles_of_a_stack_share_a_container(
    handle: Driven, make: Maker, signal: Make, store: Proxy
) -> None:
    second = make.new("OS::Heat::SwiftSignalHandle")
    second.target = dataclasses.replace(second.target, stack=handle.target.stack)
    second.create()
    send(second)
    with pytest.raises(PermanentError, match="0 of 1 received"):
        signal(timeout=1).create()
    handle.delete()
    assert names(store) == [handle.target.stack.id]
    second.act("check")
    second.delete()
    assert names(store) == []


@pytest.mark.parametrize(
    ("address", "part"),
    [
        ("http://swift.test/v1/AUTH_p/other/x", "container name"),
        ("http://swift.test/x", "Swift TempURL path"),
    ],
)
def test_an_address_of_another_stack_is_no_handle(signal: Make, address: str, part: str) -> None:
    with pytest.raises(PermanentError, match=f"is not a valid SwiftSignalHandle.  The {part} is invalid"):
        signal(handle=address).create()
