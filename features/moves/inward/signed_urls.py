"""Addresses for signals as Heat signs them: with the EC2 keys of the account of a resource.

The signature is version 2: https://docs.aws.amazon.com/general/latest/gr/signature-version-2.html
"""

import base64
import hashlib
import hmac
import urllib.parse
from dataclasses import dataclass, field

SIGNAL = ("signal", "POST")
WAIT_CONDITION = ("waitcondition", "PUT")


@dataclass(frozen=True)
class Ec2Keys:
    """The EC2 keys of the account that Heat has made for a resource."""

    access: str
    secret: str = field(repr=False)


def signed_url(root: str, kind: tuple[str, str], arn: str, keys: Ec2Keys) -> str:
    """Return an address that is valid as long as the keys are.

    :param root: address of the CloudFormation API, without its version.
    :param kind: `SIGNAL` or `WAIT_CONDITION`.
    :param arn: names the resource.
    """
    word, method = kind
    base = f"{root}/v1/{word}"
    address = urllib.parse.urlsplit(base)
    query = {"SignatureMethod": "HmacSHA256", "SignatureVersion": "2", "AWSAccessKeyId": keys.access}
    pairs = "&".join(f"{name}={_quoted(value)}" for name, value in sorted(query.items()))
    # As in Heat the path is signed without percent-encoding.
    text = "\n".join([method, address.netloc.lower(), f"{address.path}/{arn}", pairs])
    digest = hmac.new(keys.secret.encode(), text.encode(), hashlib.sha256).digest()
    query["Signature"] = base64.b64encode(digest).decode()
    return f"{base}/{urllib.parse.quote(arn)}?{urllib.parse.urlencode(query)}"


def _quoted(value: str) -> str:
    return urllib.parse.quote(value, safe="-_~")
