"""Handles that take signals for wait conditions.

A handle's reference (the value of get_resource) is the URL to which signals are posted, and that of an
imported `OS::Heat::WaitConditionHandle` its physical id, as before; a wait condition finds its handle by it,
see wait_conditions.py.
"""

import json
from collections.abc import Mapping

from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues
from ..contract import (
    Attribute,
    Done,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Signal,
    SignalError,
    Step,
    StepContext,
    SupportStatus,
    check_named,
)
from .received import AWS_KEYS, HEAT_KEYS, completed, with_signal

#: How a client may signal; those that Stoker offers need no other service.
OFFERED = ("TOKEN_SIGNAL", "CFN_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL")
TRANSPORTS = ("CFN_SIGNAL", "TEMP_URL_SIGNAL", "HEAT_SIGNAL", "NO_SIGNAL", "ZAQAR_SIGNAL", "TOKEN_SIGNAL")

ATTRIBUTES = "attributes"
"""Key of the data of a handle that was imported: its attributes as its clients know them."""
REFERENCE = "reference"
"""Key of the data of a handle that was imported: its reference, which others of its stack may have."""


class _Handle(ResourceType):
    """Base of the handles."""

    stored_here = True

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Store the URL, so that clients keep the one they know even if the API moves."""
        return Done(physical_id=target.physical_name, data=self._address(target, context))

    def handle_adopt(self, target: ResourceView, context: StepContext) -> Step:
        """Store a new URL: it names the stack and the row, so that of another stack is invalid."""
        check_named(target)
        return Done(data=self._address(target, context))

    def _address(self, target: ResourceView, context: StepContext) -> JsonMap:
        presigned = context.presigned()
        return {"endpoint": presigned.endpoint, "token": presigned.signature, "url": presigned.url}


class WaitConditionHandle(_Handle):
    """Heat's handle.  Its token is good for the signals of this one resource and for nothing else."""

    type_name = "OS::Heat::WaitConditionHandle"
    description = (
        "A wait condition handle: the address for signals, such as that of a server that is set up.\n\n"
        "A WaitCondition waits for them. The two are separate so that the instance can get the address "
        "before anything waits."
    )
    support_status = SupportStatus(version="2014.2")
    properties_schema = {
        "signal_transport": Property(
            "string",
            "Signal transport of the clients. TOKEN_SIGNAL: POST to the endpoint, with the token. "
            "CFN_SIGNAL: POST to a signed URL. HEAT_SIGNAL: signal call of the API, with an account that "
            "Stoker creates. NO_SIGNAL: no URL. Others are not supported.",
            default="TOKEN_SIGNAL",
            constraints=(AllowedValues(values=TRANSPORTS),),
            support_status=SupportStatus(version="6.0.0"),
        )
    }
    attributes_schema = {
        "token": Attribute(
            "Token that a client sends as X-Auth-Token; null without TOKEN_SIGNAL.", "string", sensitive=True
        ),
        "endpoint": Attribute("URL to which a client posts its signal; null without TOKEN_SIGNAL.", "string"),
        "curl_cli": Attribute(
            "Beginning of a command line that sends a signal; null without TOKEN_SIGNAL. Add --data-binary "
            '\'{"status": "SUCCESS"}\', or FAILURE for a failure.',
            "string",
            sensitive=True,
        ),
        "signal": Attribute(
            "Access data for signals by signal_transport, as JSON text.",
            "string",
            sensitive=True,
        ),
    }

    def validate(self, properties: JsonMap) -> None:
        """Check that the transport is supported.

        :raises PropertyError: the transport needs a service that Stoker does not use.
        """
        transport = properties.get("signal_transport", "TOKEN_SIGNAL")
        if transport not in OFFERED:
            raise PropertyError(
                f"{transport} is not supported; use one of {', '.join(OFFERED)}", ("signal_transport",)
            )

    def reference_id(self, target: ResourceView) -> Json:
        """Return the endpoint, which is useless without the token; an imported one keeps what it had."""
        return target.data.get(REFERENCE) or target.data.get("endpoint", target.name)

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the attributes that the transport needs; those of an imported handle stay as they were."""
        if ATTRIBUTES in target.data:
            attributes: JsonMap = target.data[ATTRIBUTES]
            return attributes
        endpoint = target.data.get("endpoint")
        token = target.data.get("token")
        match target.properties["signal_transport"]:
            case "TOKEN_SIGNAL":
                return {
                    "token": token,
                    "endpoint": endpoint,
                    "curl_cli": "curl -i -X POST -H 'Content-Type: application/json' "
                    f"-H 'Accept: application/json' '{target.data.get('url')}'",
                    "signal": json.dumps({"endpoint": endpoint, "token": token}),
                }
            case "CFN_SIGNAL":
                return {"signal": json.dumps({"alarm_url": target.data.get("url")})}
            case "HEAT_SIGNAL":
                return {"signal": json.dumps({"alarm_url": endpoint, **(target.data.get("account") or {})})}
        return {"signal": "{}"}

    def _address(self, target: ResourceView, context: StepContext) -> JsonMap:
        if target.properties["signal_transport"] == "HEAT_SIGNAL":
            user = context.signal_user()
            account = {
                name: getattr(user, name) for name in ("auth_url", "user_id", "password", "project_id")
            }
            return {"endpoint": context.presigned().endpoint, "account": {"username": target.name, **account}}
        if target.properties["signal_transport"] in ("TOKEN_SIGNAL", "CFN_SIGNAL"):
            return super()._address(target, context)
        return {"endpoint": context.signal_url(target.name)}

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Take ``{"id":, "status":, "reason":, "data":}``; each may be left out, also all of it.

        :raises SignalError: other keys, or a status other than SUCCESS and FAILURE.
        """
        signal = completed(_map(details or {}), target.metadata)
        return with_signal(target.metadata, signal, HEAT_KEYS)


class AwsWaitConditionHandle(_Handle):
    """The handle of CloudFormation templates."""

    type_name = "AWS::CloudFormation::WaitConditionHandle"
    description = "A wait condition handle whose reference is a URL for cfn-signal."
    support_status = SupportStatus(version="2014.1")

    def reference_id(self, target: ResourceView) -> Json:
        """Return the URL with its signature: a secret."""
        return target.data.get("url", target.name)

    def handle_signal(self, target: ResourceView, details: Json) -> Signal:
        """Take ``{"UniqueId":, "Status":, "Reason":, "Data":}``, all of it; nothing at all changes nothing.

        :raises SignalError: missing or other keys, or a status other than SUCCESS and FAILURE.
        """
        if details is None:
            return Signal(metadata=target.metadata, reason="empty signal")
        return with_signal(target.metadata, _map(details), AWS_KEYS)


class UpdateWaitConditionHandle(AwsWaitConditionHandle):
    """A handle that every update replaces, so that all signals have to arrive again."""

    type_name = "OS::Heat::UpdateWaitConditionHandle"
    description = (
        "A wait condition handle that each update replaces.\n\n"
        "All clients have to signal again, at the new URL; so the end of the update means that the new "
        "configuration has arrived everywhere."
    )
    always_replaced = True

    def needs_replace(self, before: JsonMap, after: JsonMap) -> bool:
        """Return True: every update replaces it."""
        return True


def _map(details: Json) -> JsonMap:
    if not isinstance(details, Mapping):
        raise SignalError("Metadata format invalid: a signal is a map")
    return details
