"""Signed requests become the headers of a token; a refused token of the service is renewed, but rarely."""

import json

import pytest
from keystoneauth1 import exceptions
from stoker.keystone.caller import CallerAccess
from stoker.keystone.client_options import ServiceOptions
from stoker.keystone.delegated_auth import KeystoneUnavailable
from stoker.keystone.ec2_tokens import RENEWED, Ec2Tokens, SignatureRefused

ENDPOINTS = [
    {"interface": "public", "url": "http://nova", "region": "one", "region_id": "one"},
    {"interface": "internal", "url": "http://inner", "region": "one", "region_id": "one"},
    {"interface": "public", "url": "http://far", "region_id": "two"},
]
BODY = {
    "token": {
        "user": {"id": "u1", "name": "ana", "domain": {"id": "default"}},
        "project": {"id": "p1", "name": "demo", "domain": {"id": "default"}},
        "roles": [{"name": "member"}, {"name": "reader"}],
        "catalog": [{"type": "compute", "name": "nova", "endpoints": ENDPOINTS}],
        "is_admin_project": False,
    }
}


class Answer:
    def __init__(self, status):
        self.status_code = status
        self.headers = {"X-Subject-Token": "the token"}

    def json(self):
        return BODY


class Session:
    """Plays the session of the service's account: gives these answers, one after the other."""

    def __init__(self, *statuses):
        self.statuses = list(statuses)
        self.posts = []
        self.invalidated = 0

    def post(self, path, **options):
        self.posts.append((path, options["json"]))
        status = self.statuses.pop(0)
        if isinstance(status, Exception):
            raise status
        return Answer(status)

    def invalidate(self):
        self.invalidated += 1


class Clock:
    now = 1000.0

    def __call__(self):
        return self.now


def test_a_token_becomes_the_headers_of_the_middleware():
    session = Session(200)
    headers = Ec2Tokens(lambda: session, Clock()).headers({"access": "k"})
    assert session.posts == [("/ec2tokens", {"ec2Credentials": {"access": "k"}})]
    catalog = headers.pop("X-SERVICE-CATALOG")
    assert headers == {
        "X-IDENTITY-STATUS": "Confirmed",
        "X-AUTH-TOKEN": "the token",
        "X-USER-ID": "u1",
        "X-USER-NAME": "ana",
        "X-USER-DOMAIN-ID": "default",
        "X-PROJECT-ID": "p1",
        "X-PROJECT-NAME": "demo",
        "X-PROJECT-DOMAIN-ID": "default",
        "X-ROLES": "member,reader",
        "X-IS-ADMIN-PROJECT": "false",
    }
    [service] = json.loads(catalog)
    assert [entry["region"] for entry in service["endpoints"]] == ["one", "two"]
    access = CallerAccess("the token", "u1", "p1", catalog)
    for region, interface, has_endpoint in [("one", "internal", True), ("two", "internal", False)]:
        options = ServiceOptions(region_name=region, interface=interface)
        assert access.has_service("compute", options) is has_endpoint
    assert not access.has_service("volumev3", ServiceOptions())


def test_a_refusal_renews_the_services_own_token_once_a_minute():
    session = Session(401, 401, 401, 200)
    clock = Clock()
    tokens = Ec2Tokens(lambda: session, clock)
    for _ in range(2):
        with pytest.raises(SignatureRefused):
            tokens.headers({})
    assert (session.invalidated, len(session.posts)) == (0, 2)
    clock.now += RENEWED
    assert tokens.headers({})["X-USER-ID"] == "u1"
    assert (session.invalidated, len(session.posts)) == (1, 4)
    session.statuses = [401]
    with pytest.raises(SignatureRefused):
        tokens.headers({})
    assert session.invalidated == 1


@pytest.mark.parametrize("status", [403, 500, 503, exceptions.ConnectFailure("http://inside:5000 refused")])
def test_a_keystone_that_cannot_say_is_unavailable(status):
    with pytest.raises(KeystoneUnavailable, match="^(?!.*inside)"):
        Ec2Tokens(lambda: Session(status), Clock()).headers({})
