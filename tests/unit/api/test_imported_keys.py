"""A key of resources of several projects acts for the one whose secret has signed, or that is named."""

import types
import typing
import urllib.parse

import pytest
from stoker.api import signed
from stoker.api.ec2_signatures import SignedRequest
from stoker.api.errors import Fault
from stoker.api.strangers import Attempt, Strangers
from stoker.features.moves.inward.signed_urls import WAIT_CONDITION, Ec2Keys, signed_url

Json = typing.Any
ARN = "arn:openstack:heat::p:stacks/s/1/resources/r"
ATTEMPT = Attempt(Strangers(), "")
ADDRESS = "http://api.test:8000"


class Keys:
    """Two resources with one access key, and two with one account."""

    servers = tuple(
        types.SimpleNamespace(stack_id=stack, name="r", read_by=None) for stack in ("attacker", "victim")
    )

    def imported(self, key: str) -> list[tuple[Json, str | None]]:
        secrets = {"key": ["secret-of-attacker", "secret-of-victim"], "user": [None, None]}
        return list(zip(self.servers, secrets.get(key, ()), strict=False))

    def admits(self, server: Json, transport: str) -> bool:
        return True


def request(key: str, secret: str) -> SignedRequest:
    address = urllib.parse.urlsplit(signed_url(ADDRESS, WAIT_CONDITION, ARN, Ec2Keys(key, secret)))
    path = urllib.parse.unquote(address.path)
    return SignedRequest("PUT", address.netloc, path, urllib.parse.parse_qsl(address.query))


@pytest.mark.parametrize("owner", ["attacker", "victim"])
def test_the_secret_that_has_signed_says_whose_a_key_is(owner: str) -> None:
    guests: Json = Keys()
    server: Json = signed.guest_of(
        request("key", f"secret-of-{owner}"), guests, 0.0, Attempt(Strangers(), "")
    )
    assert server.stack_id == owner


@pytest.mark.parametrize(("key", "secret"), [("key", "another"), ("none", "secret-of-victim"), ("user", "x")])
def test_another_secret_is_refused(key: str, secret: str) -> None:
    guests: Json = Keys()
    with pytest.raises(Fault) as caught:
        signed.guest_of(request(key, secret), guests, 0.0, ATTEMPT)
    assert caught.value.status == 403
