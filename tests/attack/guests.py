"""Attacks of a server's guest, or of who has its keys or addresses."""

import base64
import hashlib
import hmac
import typing
import urllib.parse

import requests
from attack.cases import case
from attack.target import Party, Target, Unexpected, expect

Json = typing.Any
NOBODY = Party("")


def _signed(target: Target, secret: str | None = None, **changes: str) -> requests.Response:
    """Send a request of the attacker's guest, signed as EC2's API has it, version 2."""
    keys = target.outputs["mine"]["server"]["cfn"]
    params = {
        "Action": "DescribeStackResource",
        "StackName": keys["stack_name"],
        "LogicalResourceId": "server",
        "AWSAccessKeyId": keys["access_key_id"],
        "SignatureVersion": "2",
        "SignatureMethod": "HmacSHA256",
        **changes,
    }
    host = urllib.parse.urlsplit(target.root).netloc.lower()
    query = "&".join(f"{_quoted(name)}={_quoted(params[name])}" for name in sorted(params))
    text = f"GET\n{host}\n/v1/\n{query}".encode()
    key = (secret or keys["secret_access_key"]).encode()
    params["Signature"] = base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()
    return target.send("GET", "/v1/", party=NOBODY, params=params)


def _quoted(text: str) -> str:
    return urllib.parse.quote(text, safe="-_.~")


@case("guest", "its own metadata, signed with its keys", "200: the signature of these cases is right")
def own_metadata(target: Target) -> None:
    expect(_signed(target), 200)


@case("guest", "a request with another secret, the victim's key, or without a signature", "400 or 403")
def wrong_signatures(target: Target) -> None:
    foreign = target.outputs["theirs"]["server"]["cfn"]["access_key_id"]
    expect(_signed(target, secret="0" * 64), 403)
    expect(_signed(target, AWSAccessKeyId=foreign), 403)
    expect(_signed(target, AWSAccessKeyId="x" * 129), 400, 403)
    expect(_signed(target, SignatureVersion="1"), 400, 403)
    expect(_signed(target, SignatureMethod="HmacMD5"), 400, 403)
    expect(_signed(target, Timestamp="2001-01-01T00:00:00Z"), 400, 403)
    expect(target.send("GET", "/v1/?Action=DescribeStackResource", party=NOBODY), 400, 403)


@case("guest", "another resource, another stack, another action, signed rightly", "400 or 403")
def beyond_its_server(target: Target) -> None:
    names = target.names
    expect(_signed(target, LogicalResourceId="polled"), 403)
    expect(_signed(target, StackName=names["stack_name"]), 403)
    expect(_signed(target, StackName=names["stack_id"]), 403)
    expect(_signed(target, StackName=names["arn"].partition("/resources/")[0]), 403)
    for action in ("ListStacks", "DeleteStack", "DescribeStacks", "GetTemplate", "x"):
        expect(_signed(target, Action=action), 400, 403)


@case("guest", "a form of 5,000 parameters", "400")
def many_parameters(target: Target) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    data = "&".join(f"a{number}=b" for number in range(5000))
    expect(target.send("POST", "/v1/", party=NOBODY, data=data, headers=form), 400, 403)


def _path_of(url: str) -> str:
    """Return the path of an address below the root of the API."""
    path = urllib.parse.urlsplit(url).path
    return path[path.index("/v1/") :]


def _address(target: Target) -> tuple[str, dict[str, str]]:
    """Return the attacker's address for metadata: its path and its query."""
    url = target.outputs["mine"]["polled"]["request"]["metadata_url"]
    return _path_of(url), dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


@case("guest", "its address without, with a wrong, or with another's signature", "403")
def wrong_addresses(target: Target) -> None:
    path, query = _address(target)
    expect(target.send("GET", path, party=NOBODY, params=query), 200)
    expect(target.send("GET", path, party=NOBODY), 403)
    flipped = "".join("0" if digit != "0" else "1" for digit in query["Signature"])
    expect(target.send("GET", path, party=NOBODY, params={"Signature": flipped}), 403)
    expect(
        target.send("GET", path, party=NOBODY, params={"Signature": query["Signature"].upper() + "x"}), 403
    )
    expect(target.send("GET", path.replace("/polled/", "/server/"), party=NOBODY, params=query), 403)
    row = int(path.rpartition("/")[2])
    expect(target.send("GET", f"{path.rpartition('/')[0]}/{row + 1}", party=NOBODY, params=query), 403)


@case("guest", "a signal with the signature of the metadata, and the other way round", "403")
def other_purpose(target: Target) -> None:
    path, query = _address(target)
    signal = path.replace("/guest/", "/signal/")
    expect(target.send("POST", signal, {}, party=NOBODY, params=query), 403)


@case("guest", "a breakpoint's release by a signed signal", "403")
def release_by_signal(target: Target) -> None:
    outputs = target.outputs["mine"]
    body = {"unset_hook": "pre-update"}
    token = {"X-Auth-Token": outputs["token"]}
    answer = target.send("POST", _path_of(outputs["endpoint"]), body, NOBODY, headers=token)
    expect(answer, 401, 403)


@case("guest", "a token for an account with a wrong password, and for one that is not there", "401")
def wrong_passwords(target: Target) -> None:
    for name in ("x", target.outputs["theirs"]["server"]["cfn"]["access_key_id"], "admin"):
        user = {"id": name, "password": "x"}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
        expect(target.send("POST", "/v1/identity/v3/auth/tokens", body, NOBODY), 401)


MOST_PROCESSES = 16
"""Processes of the API, each of which counts for itself."""


@case(
    "guest",
    "a new key in each request, and passwords that are tried one after the other, by hundreds",
    "429 with Retry-After; 200 for guests with right keys at the same address",
)
def unknown_keys(target: Target) -> None:
    refused = 0
    for number in range(120 * MOST_PROCESSES):
        if number % 2:
            user = {"id": f"guess-{number}", "password": "x"}
            body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
            answer = target.send("POST", "/v1/identity/v3/auth/tokens", body, NOBODY)
        else:
            signed = {"AWSAccessKeyId": f"{number:032}", "SignatureVersion": "2", "Signature": "x"}
            signed |= {"SignatureMethod": "HmacSHA256", "Timestamp": "2100-01-01T00:00:00Z"}
            path = f"/v1/waitcondition/{target.names['arn']}"
            answer = target.send("PUT", path, party=NOBODY, params=signed)
        expect(answer, 401, 403, 429)
        if answer.status_code == 429:
            refused += 1
            if not answer.headers.get("Retry-After", "").isdigit():
                raise Unexpected("429 does not say when to try again")
        if refused == 10:
            break
    else:
        raise Unexpected("an address may try any number of keys and passwords")
    expect(_signed(target), 200)


@case("guest", "a signal that is no JSON, too deep, or above the limit", "4xx")
def broken_signals(target: Target) -> None:
    outputs = target.outputs["mine"]
    for data in (b"[" * 100_000, b"1" * 100_000, b'{"a": NaN}', b"\xff", b'{"data": "' + b"x" * 10_000_000):
        headers = {"X-Auth-Token": outputs["token"], "Content-Type": "application/json"}
        answer = target.send("POST", _path_of(outputs["endpoint"]), party=NOBODY, data=data, headers=headers)
        expect(answer, 400, 401, 403, 413)
        if "Traceback" in answer.text:
            raise Unexpected("it shows a traceback")
