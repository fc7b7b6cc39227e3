"""The table of errors: what each service's refusal means to a step, in the service's own words."""

import itertools
import json
import typing
from collections.abc import Iterator

import pytest
from harness.ports import free_port
from harness.scripted_service import Answer, ScriptedService, serving
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from stoker.resources import list_pages
from stoker.resources.contract.errors import Cancelled, OverQuota, PermanentError, RetryableError
from stoker.resources.openstack.service import (
    QUOTA_PAUSE,
    TOO_LONG,
    Conflict,
    RemoteNotFound,
    Service,
    UnreadableAnswer,
    in_use,
    object_of,
    objects_of,
    texts_of,
)

Json = typing.Any
PAGE = (
    "<html><head><title>409 Conflict</title></head><body><h1>409 Conflict</h1>Image is in use</body></html>"
)


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        yield service


def _nova(name: str, code: int, text: str) -> Json:
    return {name: {"code": code, "message": text}}


def _neutron(name: str, text: str) -> Json:
    return {"NeutronError": {"type": name, "message": text, "detail": ""}}


def _keystone(code: int, text: str) -> Json:
    return {"error": {"code": code, "message": text, "title": "Any"}}


def _refused(scripted: ScriptedService, service: str, answer: Answer) -> Exception:
    scripted.answers["POST /things"] = answer
    with pytest.raises((PermanentError, RetryableError)) as caught:
        Service(scripted.adapter(service)).post("/things", {"thing": {}})
    return caught.value


@pytest.mark.parametrize(
    ("service", "status", "body", "kind", "text"),
    [
        ("compute", 400, _nova("badRequest", 400, "bad flavor"), "BadRequest", "bad flavor"),
        ("compute", 403, _nova("forbidden", 403, "not yours"), "Forbidden", "not yours"),
        ("compute", 405, _nova("notAllowed", 405, "no"), "MethodNotAllowed", "no"),
        ("block-storage", 413, _nova("tooLarge", 413, "body too large"), "OverLimit", "body too large"),
        ("network", 400, _neutron("BadCidr", "bad cidr"), "BadRequest", "bad cidr"),
        ("identity", 403, _keystone(403, "not allowed"), "Forbidden", "not allowed"),
        ("load-balancer", 400, {"faultcode": "Client", "faultstring": "bad"}, "BadRequest", "bad"),
        ("image", 400, "<html><body>400 Bad <b>request</b></body></html>", "BadRequest", "400 Bad request"),
        ("compute", 418, {"odd": {"message": "tea"}}, "ResourceFailure", "tea"),
    ],
)
def test_refusals_for_good(
    scripted: ScriptedService, service: str, status: int, body: Json, kind: str, text: str
) -> None:
    error = _refused(scripted, service, Answer(status, body))
    assert isinstance(error, PermanentError)
    assert (error.kind, str(error)) == (kind, f"{service} {status}: {text} [req-1]")


ECHOED = {"a": 'echo "a"\n' * 20, "b": "short"}
USER_DATA = "IyEvYmluL2Jhc2gK" * 6000
SCRIPT = 'echo "a"\n' * 20


@pytest.mark.parametrize(
    ("echo", "own"),
    [
        (
            f"Invalid input for field/attribute user_data. Value: {USER_DATA}. '{USER_DATA}' is too long",
            "Invalid input for field/attribute user_data. Value: …. '…' is too long",
        ),
        (f"Value: {USER_DATA[:900]}", "Value: …"),
        (f"Value: {ECHOED}", "Value: {'a': '…', 'b': 'short'}"),
        (f"Value: {json.dumps([SCRIPT])}", 'Value: ["…"]'),
        (f"the flavor {'m' * 60} is unknown", f"the flavor {'m' * 60} is unknown"),
    ],
)
def test_a_refusal_is_cut_to_the_services_own_words(scripted: ScriptedService, echo: str, own: str) -> None:
    scripted.answers["POST /servers"] = Answer(400, _nova("badRequest", 400, echo))
    body = {"server": {"user_data": USER_DATA, "files": [SCRIPT], "flavor": "m" * 60}}
    with pytest.raises(PermanentError) as caught:
        Service(scripted.adapter("compute")).post("/servers", body)
    assert str(caught.value) == f"compute 400: {own} [req-1]"


@pytest.mark.parametrize(
    ("service", "status", "body", "expected", "text"),
    [
        ("compute", 404, _nova("itemNotFound", 404, "no such"), RemoteNotFound, "no such"),
        ("network", 404, _neutron("NetworkNotFound", "no such"), RemoteNotFound, "no such"),
        ("compute", 409, _nova("conflictingRequest", 409, "busy"), Conflict, "busy"),
        ("network", 409, _neutron("PortInUse", "in use"), Conflict, "in use"),
        ("image", 409, PAGE, Conflict, "409 Conflict Image is in use"),
    ],
)
def test_refusals_with_a_class_of_their_own(
    scripted: ScriptedService, service: str, status: int, body: Json, expected: type, text: str
) -> None:
    error = _refused(scripted, service, Answer(status, body))
    assert type(error) is expected
    assert str(error) == f"{service} {status}: {text} [req-1]"


@pytest.mark.parametrize(
    ("service", "status", "body"),
    [
        ("compute", 403, _nova("forbidden", 403, "Quota exceeded for instances: Requested 1")),
        ("compute", 403, _nova("forbidden", 403, "Maximum number of ports exceeded")),
        ("network", 409, _neutron("OverQuota", "Quota exceeded for resources: ['network']")),
        ("block-storage", 413, _nova("overLimit", 413, "VolumeLimitExceeded: maximum number")),
        ("image", 413, "<html><body>image_count_total is over quota of 1</body></html>"),
    ],
)
def test_a_quota_is_waited_for(scripted: ScriptedService, service: str, status: int, body: Json) -> None:
    error = _refused(scripted, service, Answer(status, body))
    assert isinstance(error, OverQuota), "it is waited for as long as [stacks] quota_wait says"
    assert error.after == QUOTA_PAUSE
    assert str(error).startswith(f"over the quota: {service} {status}: ")
    assert str(error).endswith("[req-1]")


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
@pytest.mark.parametrize(
    ("retry_after", "after"),
    [(None, None), ("7", 7.0), ("999999", TOO_LONG), ("Fri, 31 Dec 1999 23:59:59 GMT", None)],
)
def test_a_busy_service_is_called_again(
    scripted: ScriptedService, status: int, retry_after: str | None, after: float | None
) -> None:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    error = _refused(scripted, "compute", Answer(status, {"error": {"message": "quota? busy"}}, headers))
    assert isinstance(error, RetryableError)
    assert (error.after, str(error)) == (after, f"compute {status}: quota? busy [req-1]")


def test_a_token_is_refused(scripted: ScriptedService) -> None:
    error = _refused(scripted, "compute", Answer(401, _keystone(401, "no token")))
    assert isinstance(error, PermanentError)
    assert error.kind == "Unauthorized"


def test_a_service_that_is_down_is_called_again() -> None:
    adapter = Adapter(Session(auth=Token(f"http://127.0.0.1:{free_port()}", "token")), service_type="network")
    with pytest.raises(RetryableError, match="network: no connection: "):
        Service(adapter).get("/networks")


def test_a_long_text_is_cut(scripted: ScriptedService) -> None:
    error = _refused(scripted, "compute", Answer(400, _nova("badRequest", 400, "x" * 5000)))
    assert 1000 < len(str(error)) < 1100


def test_an_empty_answer_has_a_text(scripted: ScriptedService) -> None:
    assert str(_refused(scripted, "compute", Answer(400))).startswith("compute 400: ")


def test_what_is_in_use_is_waited_for_with_growing_pauses() -> None:
    error = in_use(Conflict("network 409: busy"))
    assert (str(error), error.after) == ("still in use: network 409: busy", None)


@pytest.mark.parametrize(("count", "names"), [(1, "a"), (5, "a, b, c, d, e"), (7, "a, b, c, d, e, 2 more")])
def test_what_uses_a_thing_is_named(count: int, names: str) -> None:
    error = in_use(Conflict("network 409: busy"), list("abcdefg"[:count]))
    assert str(error) == f"still in use by {names}: network 409: busy"


def test_headers_and_bodies(scripted: ScriptedService) -> None:
    scripted.answers["PATCH /images/1"] = Answer(200, {"id": "1"})
    scripted.answers["DELETE /images/1?user_id=u"] = Answer(204)
    service = Service(scripted.adapter("image"))
    assert service.patch("/images/1", [], Content_Type="application/x") == {"id": "1"}
    service.delete("/images/1", user_id="u")
    assert scripted.requests == ["PATCH /images/1", "DELETE /images/1?user_id=u"]


def test_lists_are_read_to_their_end(scripted: ScriptedService) -> None:
    links = [{"rel": "previous", "href": "x"}, {"rel": "next", "href": f"{scripted.url}/ports?marker=a"}]
    scripted.answers["GET /ports?limit=1"] = Answer(200, {"ports": [{"id": "a"}], "ports_links": links})
    scripted.answers["GET /ports?marker=a"] = Answer(200, {"ports": [{"id": "b"}], "ports_links": links[:1]})
    service = Service(scripted.adapter("network"))
    assert [item["id"] for item in service.list_all("/ports", "ports", limit=1)] == ["a", "b"]


def test_lists_of_images_are_read_to_their_end(scripted: ScriptedService) -> None:
    first = {"images": [{"id": "a"}], "next": "/v2/images?marker=a"}
    scripted.answers["GET /images"] = Answer(200, first)
    scripted.answers["GET /images?marker=a"] = Answer(200, {"images": [{"id": "b"}]})
    service = Service(scripted.adapter("image"))
    assert [item["id"] for item in service.list_all("/images", "images")] == ["a", "b"]


@pytest.mark.parametrize("body", ["<html>a proxy's page</html>", '{"things": [{"id":', "17"])
def test_an_answer_that_cannot_be_read_may_be_right_later(scripted: ScriptedService, body: str) -> None:
    scripted.answers["GET /things"] = Answer(200, body)
    with pytest.raises(UnreadableAnswer, match=r"^network: the answer cannot be read: it is "):
        Service(scripted.adapter("network")).list_all("/things", "things")


def test_a_list_whose_pages_go_round_is_refused(scripted: ScriptedService) -> None:
    link = [{"rel": "next", "href": f"{scripted.url}/ports?marker=a"}]
    scripted.answers["GET /ports"] = Answer(body={"ports": [{"id": "a"}], "ports_links": link})
    with pytest.raises(UnreadableAnswer, match="a page of its list follows itself"):
        Service(scripted.adapter("network")).list_all("/ports", "ports")
    assert scripted.requests == ["GET /ports", "GET /ports?marker=a"]


def endless(scripted: ScriptedService, padding: str = "") -> Iterator[Answer]:
    """Pages without an end."""
    for number in itertools.count(1):
        link = [{"rel": "next", "href": f"{scripted.url}/ports?marker={number}"}]
        yield Answer(body={"ports": [{"id": f"{number}{padding}"}], "ports_links": link})


def serve_endless(scripted: ScriptedService, count: int, padding: str = "") -> None:
    for number, answer in enumerate(itertools.islice(endless(scripted, padding), count)):
        scripted.answers[f"GET /ports?marker={number}"] = answer


def test_a_list_has_a_limit_of_pages(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_pages, "MOST_PAGES", 5)
    serve_endless(scripted, 8)
    with pytest.raises(UnreadableAnswer, match="more than 5 pages"):
        Service(scripted.adapter("network")).list_all("/ports?marker=0", "ports")
    assert len(scripted.requests) == 5


def test_a_list_has_a_limit_of_bytes(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_pages, "MOST_BYTES", 2500)
    serve_endless(scripted, 8, "x" * 1000)
    with pytest.raises(UnreadableAnswer, match="more than 2500 bytes"):
        Service(scripted.adapter("network")).list_all("/ports?marker=0", "ports")
    assert len(scripted.requests) == 3


def test_a_list_has_a_deadline(scripted: ScriptedService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(list_pages, "LONGEST", -1.0)
    serve_endless(scripted, 3)
    with pytest.raises(UnreadableAnswer, match="takes more than"):
        Service(scripted.adapter("network")).list_all("/ports?marker=0", "ports")
    assert len(scripted.requests) == 1


def test_a_cancel_ends_a_list_between_its_pages(scripted: ScriptedService) -> None:
    serve_endless(scripted, 3)

    def checkpoint() -> None:
        raise Cancelled

    with pytest.raises(Cancelled):
        Service(scripted.adapter("network"), checkpoint).list_all("/ports?marker=0", "ports")
    assert len(scripted.requests) == 1


@pytest.mark.parametrize(
    "href",
    [
        "http://other.example/ports?marker=a",
        "https://127.0.0.1/ports",
        "//other.example/ports",
        "http://127.0.0.1:1/ports",
        "http://[::1/ports",
    ],
)
def test_a_page_elsewhere_is_not_fetched(scripted: ScriptedService, href: str) -> None:
    link = [{"rel": "next", "href": href}]
    scripted.answers["GET /ports"] = Answer(body={"ports": [], "ports_links": link})
    with pytest.raises(UnreadableAnswer, match="at another host, port or scheme"):
        Service(scripted.adapter("network")).list_all("/ports", "ports")
    scripted.answers["GET /ports"] = Answer(body={"ports": [{}], "next": href})
    with pytest.raises(UnreadableAnswer, match="at another host, port or scheme"):
        Service(scripted.adapter("network")).list_all("/ports", "ports")


@pytest.mark.parametrize("links", [7, "next", [7], [{"rel": "next"}], {"rel": "next"}])
def test_odd_links_are_an_answer_that_cannot_be_read(scripted: ScriptedService, links: Json) -> None:
    scripted.answers["GET /ports"] = Answer(body={"ports": [], "ports_links": links})
    with pytest.raises(UnreadableAnswer):
        Service(scripted.adapter("network")).list_all("/ports", "ports")


@pytest.mark.parametrize("body", [{}, {"things": None, "next": 1}, {"things": "x"}, {"things": [1]}])
def test_a_list_without_its_members_is_not_an_empty_one(scripted: ScriptedService, body: Json) -> None:
    scripted.answers["GET /things"] = Answer(200, body)
    service = Service(scripted.adapter("network"))
    if body.get("things", "") is None:
        assert service.list_all("/things", "things") == []
    else:
        with pytest.raises(UnreadableAnswer, match=r"lacks the field things|things is not a list of objects"):
            service.list_all("/things", "things")


def test_parts_of_an_answer_have_their_kinds(scripted: ScriptedService) -> None:
    scripted.answers["GET /thing"] = Answer(200, {"a": {"b": 1}, "c": [{}], "d": ["x"]})
    answer = Service(scripted.adapter("network")).get("/thing")
    assert (object_of(answer, "a"), objects_of(answer, "c"), texts_of(answer, "d")) == ({"b": 1}, [{}], ["x"])
    for read, name in ((object_of, "c"), (objects_of, "d"), (texts_of, "c"), (object_of, "absent")):
        with pytest.raises(UnreadableAnswer):
            read(answer, name)
