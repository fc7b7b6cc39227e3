"""The limit of requests of unknown keys, by the client's address."""

import base64
import dataclasses
import hashlib
import hmac
import ipaddress
import json
import types
import typing
import urllib.parse

import falcon.testing
import pytest
from harness.bare_api import ADDRESSES, bare_services
from stoker.api import strangers
from stoker.api.app import make_app
from stoker.api.errors import Fault
from stoker.api.strangers import Strangers, client_address
from stoker.cli.wiring.routes import ROUTES
from stoker.db.errors import NotFound, Unavailable
from stoker.keystone.delegated_auth import KeystoneUnavailable
from stoker.keystone.ec2_tokens import SignatureRefused

Json = typing.Any
TOKENS = "/v1/identity/v3/auth/tokens"
ARN = "/v1/{}/arn:openstack:heat::p:stacks/s/1/resources/r"
HERE = "203.0.113.5"
BURST = 100
PER_SECOND = 5
"""Failures of an address at once, and in a second, as operation.md says it."""
SIGNED = {"SignatureVersion": "2", "SignatureMethod": "HmacSHA256", "Signature": "x"}
SIGNED["Timestamp"] = "2020-01-01T00:00:00Z"


class Clock:
    now = 1_577_836_800.0

    def __call__(self) -> float:
        return self.now


class Guests:
    """Guests of which one imported key, one account and one server are known; counts what is looked up."""

    looked_up = 0
    server = types.SimpleNamespace(
        **{"stack_id": "1", "id": 1, "name": "r", "stack_name": "s", "project_id": "p", "read_by": None}
    )

    def secret(self, access_key: str) -> str:
        return "secret"

    def find(self, *row: Json) -> Json:
        return self.server

    def admits(self, *asked: Json) -> bool:
        return True

    def imported(self, key: str) -> list[tuple[Json, str]]:
        self.looked_up += 1
        return [(self.server, "secret")] if key == "imported" else []

    def account(self, user_id: str, password: str) -> tuple[Json, str] | None:
        self.looked_up += 1
        return (self.server, "http://api") if password == "right" else None


class Installation:
    """The API with these guests; `asked` counts requests to Keystone, which knows the key "user" only."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.guests = Guests()
        self.asked = 0
        self.is_down = False
        services = dataclasses.replace(
            bare_services(),
            guests=self.guests,
            clock=self.clock,
            ec2=self._exchange,
            strangers=Strangers([ipaddress.ip_network("10.0.0.0/24")], monotonic=self.clock),
        )
        self.api = falcon.testing.TestClient(make_app(services, ROUTES, ADDRESSES))

    def _exchange(self, credentials: Json) -> Json:
        self.asked += 1
        if self.is_down:
            raise KeystoneUnavailable("down")
        raise SignatureRefused("unknown")

    def action(self, key: str, address: str = HERE) -> falcon.testing.Result:
        query = {"Action": "ListStacks", "AWSAccessKeyId": key, **SIGNED}
        return self.api.simulate_get("/v1", query_string=urllib.parse.urlencode(query), remote_addr=address)

    def login(self, name: str, password: str, address: str = HERE, **headers: str) -> falcon.testing.Result:
        user = {"id": name, "password": password}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        return self.api.simulate_post(
            TOKENS, body=json.dumps(body), remote_addr=address, headers={**headers, "Content-Type": "x/json"}
        )

    def poll(self, key: str, secret: str = "secret", address: str = HERE) -> falcon.testing.Result:
        path = ARN.format("waitcondition")
        params = {"AWSAccessKeyId": key, **SIGNED}
        del params["Signature"]
        params["Timestamp"] = "2020-01-01T00:00:00Z"
        query = "&".join(f"{name}={urllib.parse.quote(params[name], safe='-_.~')}" for name in sorted(params))
        signed = f"PUT\nfalconframework.org\n{urllib.parse.quote(path)}\n{query}".encode()
        signature = base64.b64encode(hmac.new(secret.encode(), signed, hashlib.sha256).digest()).decode()
        query += "&Signature=" + urllib.parse.quote(signature, safe="")
        return self.api.simulate_put(path, query_string=query, body="[]", remote_addr=address)


@pytest.fixture
def installation() -> Installation:
    return Installation()


ENOUGH = BURST + 20


def test_a_new_key_in_each_request_is_refused_before_anything_is_read(
    installation: Installation,
) -> None:
    answers = [installation.action(f"key{number}") for number in range(ENOUGH)]
    assert [answer.status_code for answer in answers] == [403] * BURST + [429] * 20
    assert (installation.guests.looked_up, installation.asked) == (BURST, BURST)
    assert answers[-1].headers["retry-after"] == "1"
    assert "<Code>Throttling</Code>" in answers[-1].text
    assert installation.action("key", "203.0.113.6").status_code == 403
    installation.clock.now += 2
    again = [installation.action(f"again{number}").status_code for number in range(20)]
    assert again == [403] * 2 * PER_SECOND + [429] * (20 - 2 * PER_SECOND)


@pytest.mark.parametrize("kind", ["signal", "waitcondition"])
def test_signals_of_unknown_keys_are_limited(installation: Installation, kind: str) -> None:
    method = {"signal": "POST", "waitcondition": "PUT"}[kind]
    answers = [
        installation.api.simulate_request(
            method,
            ARN.format(kind),
            query_string=urllib.parse.urlencode({"AWSAccessKeyId": f"key{number}", **SIGNED}),
            remote_addr=HERE,
        )
        for number in range(ENOUGH)
    ]
    assert {answer.status_code for answer in answers[BURST:]} == {429}
    assert installation.guests.looked_up == BURST


def test_failed_logins_are_limited_and_right_ones_are_not(installation: Installation) -> None:
    assert {installation.login(f"new{n}", "right").status_code for n in range(3 * ENOUGH)} == {201}
    answers = [installation.login(f"guess{number}", "wrong") for number in range(ENOUGH)]
    assert [answer.status_code for answer in answers] == [401] * BURST + [429] * 20
    assert answers[-1].json["error"]["type"] == "TooManyRequests"
    assert answers[-1].headers["retry-after"] == "1"
    assert installation.login("new5", "right").status_code == 201
    assert installation.login("unseen", "right").status_code == 429


def test_guests_behind_the_address_of_an_attacker_are_served(installation: Installation) -> None:
    for number in range(ENOUGH):
        installation.action(f"key{number}")
    assert installation.poll("1.1", "wrong").status_code == 403
    for _ in range(3):
        answer = installation.poll("1.1")  # Its signature is verified without the database.
        assert answer.status_code not in (403, 429), answer.text


def test_a_name_that_was_right_once_is_no_way_round_the_limit(installation: Installation) -> None:
    assert installation.login("mine", "right").status_code == 201
    answers = [installation.login("mine", "wrong").status_code for _ in range(ENOUGH)]
    assert answers.count(401) == BURST


def test_what_keystone_does_not_answer_is_no_failure(installation: Installation) -> None:
    installation.is_down = True
    assert {installation.action(f"key{number}").status_code for number in range(ENOUGH)} == {503}


def test_who_asks_for_the_versions_fails_in_nothing(installation: Installation) -> None:
    statuses = {installation.api.simulate_get("/v1", remote_addr=HERE).status_code for _ in range(ENOUGH)}
    assert statuses == {300}
    assert installation.action("key").status_code == 403


def test_behind_a_trusted_proxy_the_clients_have_limits_of_their_own(installation: Installation) -> None:
    def status(client: str) -> int:
        return installation.login("x", "wrong", "10.0.0.7", **{"X-Forwarded-For": client}).status_code

    assert {status(f"{number}.9.9.9, 203.0.113.7") for number in range(200)} == {401, 429}
    assert status("203.0.113.8") == 401


@pytest.mark.parametrize(
    ("connected", "forwarded", "client"),
    [
        ("203.0.113.7", "1.2.3.4", "203.0.113.7"),
        ("10.0.0.7", "", "10.0.0.7"),
        ("10.0.0.7", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.7", "1.2.3.4, 203.0.113.9, 10.0.0.8", "203.0.113.9"),
        ("10.0.0.7", "10.0.0.8", "10.0.0.8"),
        ("10.0.0.7", "1.2.3.4, 192.0.2.9, 10.0.0.8", "1.2.3.4"),
        ("10.0.0.7", "nonsense", "10.0.0.7"),
        ("10.0.0.7", "1.2.3.4, nonsense", "10.0.0.7"),
        ("::ffff:10.0.0.7", "2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("2001:db8:5:6:7::8", "", "2001:db8:5:6::/64"),
        ("localhost", "", "localhost"),
    ],
)
def test_the_client_is_whom_the_nearest_proxy_has_seen(connected: str, forwarded: str, client: str) -> None:
    proxies = [ipaddress.ip_network(text) for text in ("10.0.0.0/24", "192.0.2.9")]
    assert client_address(connected, forwarded, proxies) == client


def left(limit: Strangers) -> float:
    """Return how many failures the address has left, at an instant that stays."""
    return limit._buckets.get(HERE, (BURST, 0.0))[0]  # noqa: SLF001


def test_an_address_has_a_hundred_failures_and_five_more_each_second() -> None:
    clock = Clock()
    limit = Strangers(monotonic=clock)
    for failures in (BURST, PER_SECOND, 2 * PER_SECOND):
        for _ in range(failures):
            limit.take(HERE)
        with pytest.raises(Fault, match="Too many requests of this address") as refused:
            limit.take(HERE)
        assert (refused.value.status, refused.value.headers) == (429, {"Retry-After": "1"})
        clock.now += 1.0 if failures == BURST else 2.0
    clock.now += 1000
    limit.forget(HERE, "a")
    assert left(limit) == BURST - 1


@pytest.mark.parametrize("name", ["a", ""])
def test_a_request_takes_one_failure_and_gives_no_more_back(name: str) -> None:
    limit = Strangers(monotonic=lambda: 0.0)
    for failures in (1, 2):
        with limit.attempt(HERE, "") as attempt:
            attempt.check(name)
            attempt.check(name)
        assert left(limit) == BURST - failures
    with limit.attempt(HERE, "") as attempt:
        attempt.check(name)
        attempt.identified()
        attempt.identified()
    assert left(limit) == BURST - 2
    with limit.attempt(HERE, "") as attempt:
        attempt.check(name)
        assert left(limit) == BURST - 2, "the name is known"
    assert left(limit) == BURST - 3, "nobody was identified"
    with limit.attempt(HERE, ""):
        pass
    assert left(limit) == BURST - 3, "no name was looked up"


@pytest.mark.parametrize(
    ("error", "failures"),
    [
        (Fault(499, "", ""), 1),
        (Fault(500, "", ""), 0),
        (NotFound("Stack", "s"), 1),
        (Unavailable("away"), 0),
        (KeystoneUnavailable("away"), 0),
        (ZeroDivisionError(), 1),
    ],
)
@pytest.mark.parametrize("is_known", [False, True])
def test_an_error_of_the_service_is_not_the_senders_failure(
    error: Exception, failures: int, is_known: bool
) -> None:
    limit = Strangers(monotonic=lambda: 0.0)
    if is_known:
        limit.remember(HERE, "a")

    def attempted() -> None:
        with limit.attempt(HERE, "") as attempt:
            attempt.check("a")
            raise error

    with pytest.raises(type(error)):
        attempted()
    assert left(limit) == BURST - failures


def test_an_address_with_all_of_its_failures_is_not_remembered() -> None:
    limit = Strangers(monotonic=lambda: 0.0)
    limit.take(HERE)
    assert list(limit._buckets) == [HERE]  # noqa: SLF001
    limit.give_back(HERE)
    assert list(limit._buckets) == []  # noqa: SLF001


def test_of_many_names_those_are_known_that_were_right_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MOST_KNOWN", 2)
    limit = Strangers()
    for name in ("a", "b", "a", "c"):
        limit.remember(HERE, name)
    assert [name for name in "abc" if limit.knows(HERE, name)] == ["a", "c"]


def test_the_tables_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MOST_ADDRESSES", 5)
    monkeypatch.setattr(strangers, "MOST_KNOWN", 5)
    limit = Strangers()
    for number in range(20):
        with limit.attempt(f"203.0.113.{number}", "") as attempt:
            attempt.check("right")
            attempt.identified()
        with limit.attempt(f"203.0.113.{number}", "") as attempt:
            attempt.check("wrong")
    assert list(limit._buckets) == [f"203.0.113.{number}" for number in range(15, 20)]  # noqa: SLF001
    assert len(limit._known) == 5  # noqa: SLF001
