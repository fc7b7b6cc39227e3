"""Requests that guests sign, with the right keys, a wrong one, or an edited signature."""

import pathlib
import typing
import urllib.parse

import falcon.testing
from fuzz.installation import Installation, Renewed
from fuzz.laws import check_status, check_text
from fuzz.mutation import MOST_BYTES, SCALARS, Choices, Mutations
from hypothesis import strategies as st
from keystoneclient.contrib.ec2.utils import Ec2Signer

Json = typing.Any
HOST = "falconframework.org"
ACTIONS = ("DescribeStackResource", "DescribeStacks", "CreateStack", "ListStacks", "ValidateTemplate", "x")
WORDS = ("mine", "victim", "$mine.arn", "$victim.arn", "$victim.stack_id", "server", "handle", "JSON")
BASES: tuple[Json, ...] = (
    {
        "method": "GET",
        "path": "/v1/",
        "params": {"Action": "DescribeStackResource", "StackName": "mine", "LogicalResourceId": "server"},
        "body": "",
    },
    {
        "method": "POST",
        "path": "/v1/signal/$mine.arn/resources/handle",
        "params": {},
        "body": '{"id": "1", "data": "d"}',
    },
    {
        "method": "PUT",
        "path": "/v1/waitcondition/$mine.arn/resources/handle",
        "params": {},
        "body": '{"status": "SUCCESS"}',
    },
    {"method": "POST", "path": "/v1/signal/$victim.arn/resources/handle", "params": {}, "body": "{}"},
    {
        "method": "POST",
        "path": "/v1/",
        "params": {
            "Action": "CreateStack",
            "StackName": "s",
            "TemplateBody": "{}",
            "Parameters.member.1.ParameterKey": "p",
        },
        "body": "",
    },
    {
        "method": "POST",
        "path": "/v1/identity/v3/auth/tokens",
        "params": {},
        "body": '{"auth": {"identity": {}}}',
    },
)
KEYS = ("$mine.server", "$mine.server", "$mine.handle", "$mine.handle", "$victim.server", "tenant", "")
DECLARED = frozenset({200, 201, 300, 400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 503})


class GuestRequests:
    """The subject.

    :param folder: an empty folder.
    """

    name = "guests"
    cost = 1

    def __init__(self, folder: pathlib.Path) -> None:
        self._renewed = Renewed(folder)
        self._mutations = Mutations(BASES)

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return requests with the names of the keys that sign them."""
        return st.binary(min_size=6, max_size=MOST_BYTES).map(self.of_bytes)

    def of_bytes(self, data: bytes) -> Json:
        """Return the request that some bytes choose."""
        choices = Choices(data[:5])
        key = choices.one(KEYS)
        secret = key if choices.below(8) < 7 else choices.one(KEYS)
        request = self._mutations.of_bytes(data[5:])
        signature = str(choices.one(SCALARS))[:200] if choices.below(16) == 15 else None
        return {"key": key, "secret": secret, "signature": signature, "request": request}

    def run(self, sent: Json) -> None:
        """Sign a request, and send it."""
        installation = self._renewed.get()
        try:
            answer = _send(installation, sent)
            if answer is None:
                return
            check_status(answer.status_code, DECLARED, "guests")
            if sent["secret"] != "$victim.server" and sent["key"] != "$victim.server":
                check_text(f"{answer.text} {answer.headers}", "guests")
            if answer.status_code < 300:
                installation.quiet()
        except BaseException:
            self._renewed.drop()
            raise


def _send(installation: Installation, sent: Json) -> falcon.testing.Result | None:
    """Send a request to an installation; None: it is none that HTTP could carry."""
    request = sent["request"]
    if not isinstance(request, dict) or not isinstance(request.get("params"), dict):
        return None
    method = request.get("method")
    if method not in ("GET", "POST", "PUT", "DELETE", "HEAD"):
        return None
    path = _filled(installation, str(request.get("path", "/")))
    params = {
        str(name)[:200]: str(installation.filled(value))[:2000] for name, value in request["params"].items()
    }
    params |= {"AWSAccessKeyId": _key(installation, sent["key"], "key"), "SignatureVersion": "2"}
    signed = {"params": params, "verb": method, "host": HOST, "path": path}
    secret = _key(installation, sent["secret"], "secret") or "x"
    params["Signature"] = sent["signature"] or Ec2Signer(secret).generate(signed)
    query = urllib.parse.urlencode(params)
    body = str(request.get("body", "")).encode("utf-8", "surrogatepass")
    return installation.api.simulate_request(
        method, "/" + urllib.parse.quote(path.lstrip("/"), safe="/:"), query_string=query, body=body
    )


def _filled(installation: Installation, path: str) -> str:
    return "/".join(str(installation.filled(part)) for part in path.split("/"))


def _key(installation: Installation, name: str, part: str) -> str:
    return installation.names.get(f"{name}.{part}", name)
