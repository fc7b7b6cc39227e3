"""Requests that name a template or files in place of sending them."""

import typing

import pytest
from stoker.api import stack_requests
from stoker.api.authenticator import NoAuthentication
from stoker.api.collaborators import Downloads
from stoker.api.context import RequestContext
from stoker.api.errors import Fault
from stoker.api.request import HttpRequest
from stoker.api.settings import ApiLimits

TEMPLATE = "heat_template_version: 2021-04-16"


def request(body: typing.Any, downloads: Downloads | None) -> HttpRequest:
    return HttpRequest(
        caller=RequestContext("p"),
        auth=NoAuthentication(),
        limits=ApiLimits(),
        path={"stack_name": "s", "stack_id": "1"},
        query={},
        body={"stack_name": "s", **body},
        base_url="",
        downloads=downloads,
    )


class Fetched:
    """Records of the requests."""

    def __init__(self) -> None:
        self.requests: list[typing.Any] = []
        self.downloads = Downloads(template=self._template, files=self._files)

    def _template(self, url: str) -> str:
        self.requests.append(url)
        return TEMPLATE

    def _files(self, access: object, container: str, present: typing.Collection[str]) -> dict[str, str]:
        self.requests.append((container, sorted(present)))
        return {"a": "fetched", "b": "fetched"}


def test_a_template_is_fetched_where_none_is_sent() -> None:
    fetched = Fetched()
    body = {"template_url": "https://h/t.yaml"}
    assert stack_requests.create_request(request(body, fetched.downloads)).goal.template == TEMPLATE
    assert fetched.requests == ["https://h/t.yaml"]
    sent = stack_requests.create_request(request({**body, "template": {"sent": 1}}, fetched.downloads))
    assert (sent.goal.template, len(fetched.requests)) == ({"sent": 1}, 1)
    changed = stack_requests.update_request(request(body, fetched.downloads), existing=True)
    assert changed.goal.template == TEMPLATE


def test_files_of_a_container_lie_below_those_of_the_request() -> None:
    fetched = Fetched()
    body = {"template": TEMPLATE, "files_container": "box", "files": {"a": "sent"}}
    assert stack_requests.create_request(request(body, fetched.downloads)).goal.files == {
        "a": "sent",
        "b": "fetched",
    }
    assert fetched.requests == [("box", ["a"])]


@pytest.mark.parametrize("key", ["template_url", "files_container"])
def test_without_what_fetches_they_are_refused(key: str) -> None:
    with pytest.raises(Fault, match=f"{key} is not supported") as error:
        stack_requests.create_request(
            request({key: "x", "template": TEMPLATE if key[0] == "f" else None}, None)
        )
    assert error.value.status == 400
