"""Files from a container of Swift: which are read, and what is refused; over real HTTP."""

import json
import typing
from collections.abc import Iterator

import pytest
from harness.scripted_service import Answer, ScriptedService, serving
from keystoneauth1.session import Session
from stoker.engine.container_files import MOST_FILES, ContainerFiles
from stoker.engine.errors import ContainerNotRead, NoContainers
from stoker.keystone.caller import CallerAccess
from stoker.keystone.client_options import ClientOptions

BASE = "/v1/AUTH_p"


@pytest.fixture
def swift() -> Iterator[ScriptedService]:
    with serving() as service:
        store(service, {"a.yaml": "A", "nested/b c.yaml": "B\u00e9"})
        yield service


def store(service: ScriptedService, files: dict[str, str], **sizes: int) -> None:
    listed = [{"name": name, "bytes": sizes.get("bytes", len(text.encode()))} for name, text in files.items()]
    service.answers[f"GET {BASE}/box"] = Answer(body=[*listed, {"subdir": "nested/"}])
    for name, text in files.items():
        service.answers[f"GET {BASE}/box/{name.replace(' ', '%20')}"] = Answer(body=text)


def access(service: ScriptedService) -> CallerAccess:
    endpoints = [{"region": "r", "publicURL": service.url + BASE}]
    catalog = [{"type": "object-store", "name": "swift", "endpoints": endpoints}]
    return CallerAccess("token", "ann", "p", json.dumps(catalog))


def read(service: ScriptedService, *present: str, name: str = "box", **limits: typing.Any) -> dict[str, str]:
    settings = {"max_bytes": 1000, "seconds": 30.0, **limits}
    files = ContainerFiles(ClientOptions(), lambda auth: Session(auth=auth), **settings)
    return files.read(access(service), name, present)


def test_all_files_are_read_but_those_of_the_request(swift: ScriptedService) -> None:
    assert read(swift) == {"a.yaml": "A", "nested/b c.yaml": "B\u00e9"}
    swift.requests.clear()
    assert read(swift, "a.yaml") == {"nested/b c.yaml": "B\u00e9"}
    assert swift.requests == [
        f"GET {BASE}/box?format=json&limit={MOST_FILES + 1}",
        f"GET {BASE}/box/nested/b%20c.yaml",
    ]


def test_a_name_stays_one_segment_of_the_path(swift: ScriptedService) -> None:
    with pytest.raises(ContainerNotRead):
        read(swift, name="box/../other?x=y")
    assert swift.requests[-1].startswith(f"GET {BASE}/box%2F..%2Fother%3Fx%3Dy?format=json")


def test_what_is_not_there_is_refused_with_the_name(swift: ScriptedService) -> None:
    with pytest.raises(ContainerNotRead, match="from container none, reason: Swift answers 404"):
        read(swift, name="none")
    del swift.answers[f"GET {BASE}/box/a.yaml"]
    with pytest.raises(ContainerNotRead, match="from container box, reason: Swift answers 404"):
        read(swift)


def test_too_much_is_refused(swift: ScriptedService) -> None:
    with pytest.raises(ContainerNotRead, match=r"download \(4 bytes\) exceeds maximum allowed \(3 bytes\)"):
        read(swift, max_bytes=3)
    store(swift, {"a.yaml": "x" * 100_000}, bytes=1)
    with pytest.raises(ContainerNotRead, match="exceeds maximum allowed"):
        read(swift)
    store(swift, {f"f{number}": "" for number in range(MOST_FILES + 1)})
    with pytest.raises(ContainerNotRead, match="more than 1000 files"):
        read(swift)


def test_an_answer_that_is_none_of_swifts_is_refused(swift: ScriptedService) -> None:
    swift.answers[f"GET {BASE}/box"] = Answer(body="<html>")
    with pytest.raises(ContainerNotRead, match="the answer of Swift is malformed"):
        read(swift)
    swift.answers[f"GET {BASE}/box"] = Answer(body=[{"name": "a.yaml"}])
    with pytest.raises(ContainerNotRead, match="malformed"):
        read(swift)


def test_time_is_limited(swift: ScriptedService) -> None:
    with pytest.raises(ContainerNotRead, match="did not arrive within 0 s|unavailable"):
        read(swift, seconds=0)


def test_without_swift_nothing_is_read() -> None:
    files = ContainerFiles(ClientOptions(), lambda auth: Session(auth=auth), max_bytes=9, seconds=9)
    for who in (None, CallerAccess("token", "ann", "p", "[]")):
        with pytest.raises(NoContainers, match="the cloud has no Swift"):
            files.read(who, "box", ())
