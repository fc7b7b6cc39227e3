"""Signatures of the EC2 API: those of real signers are right, and nothing that is changed is."""

import dataclasses
import hashlib
import typing
import urllib.parse

import pytest
from keystoneclient.contrib.ec2.utils import Ec2Signer
from stoker.api.ec2_signatures import SignatureError, SignedRequest, read_claim, verify

KEY = "AKID.1"
SECRET = "s3cr+t/key"
NOW = 1893553445.0  # 2030-01-02T03:04:05Z
HOST = "10.0.0.1:8004"
ASKED = "Action=DescribeStackResource&StackName=my%20stack&LogicalResourceId=a%2Fb~c"


def request(query: str = "", **parts: typing.Any) -> SignedRequest:
    """Return a GET of /v1/, if the parts name nothing else."""
    pairs = tuple(urllib.parse.parse_qsl(query, keep_blank_values=True))
    return SignedRequest(**{"method": "GET", "host": HOST, "path": "/v1/", "query": pairs, **parts})


def check(signed: SignedRequest, *, secret: str = SECRET, now: float = NOW) -> str:
    """Verify a signature; return the access key."""
    claim = read_claim(signed)
    verify(claim, signed, secret, now)
    return claim.access_key


def refused(signed: SignedRequest, *, secret: str = SECRET, now: float = NOW, why: str = "") -> str:
    """Return the code of the error; its text has these words."""
    with pytest.raises(SignatureError) as caught:
        check(signed, secret=secret, now=now)
    text = str(caught.value)
    assert secret not in text
    assert why in text
    assert text.startswith("The request's signature is incomplete: ") == (
        caught.value.code == "IncompleteSignature"
    )
    return caught.value.code


def collected(path: str = "/v1/", **more: str) -> SignedRequest:
    """Return the request that os-collect-config makes, signed by the library that it uses."""
    params = {**dict(urllib.parse.parse_qsl(ASKED)), "AWSAccessKeyId": KEY, "SignatureVersion": "2", **more}
    signature = Ec2Signer(SECRET).generate({"params": params, "verb": "GET", "host": HOST, "path": path})
    return request(urllib.parse.urlencode({**params, "Signature": signature}), path=path)


# Made by botocore 1.43 and boto 2.49 with KEY and SECRET at NOW.
AUTHORIZATION = (
    "AWS4-HMAC-SHA256 Credential=AKID.1/20300102/region-1/cloudformation/aws4_request, "
    "SignedHeaders={}, Signature={}"
)
BY_HEADER = request(
    ASKED,
    headers={
        "x-amz-date": "20300102T030405Z",
        "authorization": AUTHORIZATION.format(
            "host;x-amz-date", "849af7b8361447d14d2a69c923249233ec25ebb04cd2d68fa112d846529c0f00"
        ),
    },
)
FORM = "Action=DescribeStackResource&StackName=my+stack"
BOTO = request(
    f"{ASKED}&ContentType=JSON&Version=2010-05-15",
    headers={
        "x-amz-date": "20300102T030405Z",
        # It takes the region and the service from the host.
        "authorization": "AWS4-HMAC-SHA256 Credential=AKID.1/20300102/0/10/aws4_request,"
        "SignedHeaders=host;x-amz-date,Signature=03b05a1aaccf5a4b0ff1996b4888358c6e8b720a648a21ba92b9b9047f640a5d",
    },
)
BY_FORM = request(
    method="POST",
    form=tuple(urllib.parse.parse_qsl(FORM)),
    body=FORM.encode(),
    headers={
        "content-type": "application/x-www-form-urlencoded",
        "x-amz-date": "20300102T030405Z",
        "authorization": AUTHORIZATION.format(
            "content-type;host;x-amz-date", "dc420b415e4716267edbf116aa22ac15f3b310e9aabe28a62d7811e080e568c4"
        ),
    },
)
BY_ADDRESS = request(
    f"{ASKED}&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20300102T030405Z&X-Amz-Expires=600"
    "&X-Amz-Credential=AKID.1%2F20300102%2Fregion-1%2Fcloudformation%2Faws4_request&X-Amz-SignedHeaders=host"
    "&X-Amz-Signature=d7edaa3c4957d4abe92faed235b01c20541940b38300201300f3a1da1d2d8dff"
)
QUOTED_TWICE = request(
    method="PUT",
    path="/v1/waitcondition/arn:a b",
    body=b"{}",
    headers={
        "x-amz-date": "20300102T030405Z",
        "authorization": AUTHORIZATION.format(
            "host;x-amz-date", "b96c2c1a91677c9336d02e455623f7a637f5e01349e2a965eb1989d17122cee0"
        ),
    },
)


def test_the_published_example_of_version_4_is_right() -> None:
    published = SignedRequest(
        "GET",
        "example.amazonaws.com",
        "/",
        (),
        headers={
            "x-amz-date": "20150830T123600Z",
            "authorization": "AWS4-HMAC-SHA256 "
            "Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;x-amz-date, "
            "Signature=5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
        },
    )
    secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
    assert check(published, secret=secret, now=1440938160.0) == "AKIDEXAMPLE"


@pytest.mark.parametrize(
    "signed",
    [BY_HEADER, BY_FORM, BY_ADDRESS, QUOTED_TWICE, BOTO, collected()],
    ids=["header", "form", "address", "path", "boto", "os-collect-config"],
)
def test_the_signature_of_a_real_signer_is_right_and_that_of_any_changed_request_wrong(
    signed: SignedRequest,
) -> None:
    assert check(signed) == KEY
    assert refused(signed, secret=f"{SECRET}x") == "SignatureDoesNotMatch"
    changed = [
        dataclasses.replace(signed, method="DELETE"),
        dataclasses.replace(signed, path=f"{signed.path}x"),
        dataclasses.replace(signed, host="10.0.0.2:8004"),
        dataclasses.replace(signed, query=(*signed.query, ("More", "1"))),
        dataclasses.replace(signed, query=[*signed.query[:1], ("Other", ""), *signed.query[2:]]),
    ]
    if signed.body:
        changed.append(dataclasses.replace(signed, body=signed.body + b" "))
    assert {refused(request) for request in changed} == {"SignatureDoesNotMatch"}


@pytest.mark.parametrize("seconds", [-901.0, 901.0])
def test_a_time_is_valid_for_a_quarter_of_an_hour_either_way(seconds: float) -> None:
    for signed in (BY_HEADER, collected(Timestamp="2030-01-02T03:04:05Z")):
        assert check(signed, now=NOW + seconds / 901 * 900) == KEY
        assert refused(signed, now=NOW + seconds) == "RequestExpired"


def test_an_address_is_valid_until_it_expires() -> None:
    assert check(BY_ADDRESS, now=NOW + 600) == KEY
    assert refused(BY_ADDRESS, now=NOW + 601) == "RequestExpired"
    assert refused(collected(Expires="2030-01-02T03:04:04Z")) == "RequestExpired"
    assert check(collected(Expires="2030-01-02T03:04:05Z")) == KEY


def test_a_signature_without_a_time_is_valid_as_long_as_its_secret() -> None:
    assert check(collected(), now=NOW * 2) == KEY


def test_a_signed_address_may_be_signed_with_its_path_as_it_is_or_as_it_is_sent() -> None:
    path = "/v1/signal/arn:openstack:heat::t:stacks/my stack/1d/resources/a"
    for form in (path, "/v1/signal/arn%3Aopenstack%3Aheat%3A%3At%3Astacks/my%20stack/1d/resources/a"):
        params = {"AWSAccessKeyId": KEY, "SignatureVersion": "2"}
        heat = Ec2Signer(SECRET).generate({"params": params, "verb": "POST", "host": HOST, "path": form})
        signed = request(urllib.parse.urlencode({**params, "Signature": heat}), method="POST", path=path)
        assert check(signed) == KEY
        assert refused(dataclasses.replace(signed, method="PUT")) == "SignatureDoesNotMatch"


def test_the_port_may_be_missing_where_it_was_signed_without() -> None:
    params = {"AWSAccessKeyId": KEY, "SignatureVersion": "2"}
    signature = Ec2Signer(SECRET).generate({"params": params, "verb": "GET", "host": "10.0.0.1", "path": "/"})
    signed = request(urllib.parse.urlencode({**params, "Signature": signature}), path="/")
    assert check(signed) == KEY
    assert refused(dataclasses.replace(signed, host="10.0.0.2")) == "SignatureDoesNotMatch"


VALID_2 = {
    "AWSAccessKeyId": KEY,
    "SignatureVersion": "2",
    "SignatureMethod": "HmacSHA256",
    "Signature": "00",
}


@pytest.mark.parametrize(
    "change",
    [
        {"SignatureVersion": "1"},
        {"SignatureVersion": "4"},
        {"SignatureMethod": "HmacSHA1"},
        {"AWSAccessKeyId": ""},
        {"AWSAccessKeyId": "a" * 129},
        {"AWSAccessKeyId": "a/b"},
        {"AWSAccessKeyId": "ä"},
        {"Timestamp": "now"},
        {"Timestamp": "2030-13-02T03:04:05Z"},
        {"Timestamp": "2030-01-02T03:04:05Z", "Expires": "2030-01-02T03:04:05Z"},
    ],
)
def test_a_malformed_signature_of_version_2_is_refused(change: dict[str, str]) -> None:
    assert refused(request(urllib.parse.urlencode({**VALID_2, **change}))) == "IncompleteSignature"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("Credential=AKID.1/20300102", "Credential=AKID.1/20300103", "the date in Credential is not"),
        ("Credential=AKID.1/20300102", "Credential=AKID.1/2030", "Credential must be"),
        ("aws4_request", "aws4", "Credential must be"),
        ("host;x-amz-date", "x-amz-date", "must name host"),
        ("host;x-amz-date", "host;x-amz-missing", "header x-amz-missing is missing"),
        ("host;x-amz-date", "host;X-Amz-Date", "names of headers in lower case"),
        ("host;x-amz-date", ";".join(["host", *["x"] * 49]), "the signed header x is missing"),
        ("host;x-amz-date", ";".join(["host", *["x"] * 50]), "names of headers in lower case"),
        ("Signature=", "Signed=", "Signature is missing"),
    ],
)
def test_a_malformed_header_of_version_4_is_refused(old: str, new: str, why: str) -> None:
    header = BY_HEADER.headers["authorization"]
    assert old in header
    headers = {**BY_HEADER.headers, "authorization": header.replace(old, new)}
    assert refused(dataclasses.replace(BY_HEADER, headers=headers), why=why) == "IncompleteSignature"


@pytest.mark.parametrize(
    ("expires", "code"),
    [
        *((text, "IncompleteSignature") for text in ("0", "604801", "ten", "", "٣", "1" * 5000)),
        *((text, "SignatureDoesNotMatch") for text in ("1", "604800")),
    ],
)
def test_an_address_of_version_4_is_valid_for_a_week_at_most(expires: str, code: str) -> None:
    query = [(name, expires if name == "X-Amz-Expires" else value) for name, value in BY_ADDRESS.query]
    assert refused(dataclasses.replace(BY_ADDRESS, query=query)) == code


def test_an_address_names_its_algorithm() -> None:
    query = [(name, "x" if name == "X-Amz-Algorithm" else value) for name, value in BY_ADDRESS.query]
    signed = dataclasses.replace(BY_ADDRESS, query=query)
    assert refused(signed, why="X-Amz-Algorithm must be") == "IncompleteSignature"


def test_a_claim_shows_no_signature() -> None:
    claim = read_claim(BY_HEADER)
    assert claim.signature not in repr(claim)


def test_a_request_without_a_signature_or_with_two_values_of_a_parameter_is_refused() -> None:
    assert refused(request(ASKED)) == "MissingAuthenticationToken"
    assert refused(request(f"{ASKED}&Action=Other&Signature=00")) == "IncompleteSignature"
    form = (("Action", "DeleteStack"),)
    assert refused(dataclasses.replace(collected(), form=form)) == "IncompleteSignature"
    for count, code in ((1000, "MissingAuthenticationToken"), (1001, "IncompleteSignature")):
        many = [(f"name{number}", "") for number in range(count)]
        assert refused(request(urllib.parse.urlencode(many))) == code


@pytest.mark.parametrize("value", ["\udcff", "ü" * 1000, "", "\0"])
def test_whatever_is_signed_or_claimed_raises_no_other_error(value: str) -> None:
    for name in ("StackName", "Signature"):
        params = {**VALID_2, "StackName": "s", name: value}
        assert refused(request(), now=NOW) == "MissingAuthenticationToken"
        signed = SignedRequest("GET", value, value, list(params.items()))
        assert refused(signed) == "SignatureDoesNotMatch"


def test_the_body_is_part_of_version_4() -> None:
    assert hashlib.sha256(BY_FORM.body).hexdigest() != hashlib.sha256(b"").hexdigest()
    assert refused(dataclasses.replace(BY_FORM, body=b"")) == "SignatureDoesNotMatch"
