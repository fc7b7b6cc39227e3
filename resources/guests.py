"""The entries of a server's metadata by which os-collect-config, in the server, finds the metadata itself.

The transports and the names are Heat's; so are the guests.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..settings import setting
from ..shapes import Json, JsonMap
from ..template.constraints import AllowedValues
from .contract.errors import PropertyError
from .contract.guests import GuestAccess
from .contract.schema import Property

POLL_SERVER_CFN = "POLL_SERVER_CFN"
POLL_SERVER_HEAT = "POLL_SERVER_HEAT"
POLL_TEMP_URL = "POLL_TEMP_URL"
COLLECT_CONFIG = "os_collect_config"
"""The attribute of servers with these entries."""
LOCAL = "local"
"""The collector that reads the files of the server, always the last one."""


def _signed_polls(access: GuestAccess) -> dict[str, Json]:
    return {
        "cfn": {
            "metadata_url": access.metadata_url,
            "access_key_id": access.access_key,
            "secret_access_key": access.secret_key,
            "stack_name": access.stack_name,
            "path": f"{access.resource_name}.Metadata",
        }
    }


def _presigned_polls(access: GuestAccess) -> dict[str, Json]:
    return {"request": {"metadata_url": access.presigned.url}}


def _heat_polls(access: GuestAccess) -> dict[str, Json]:
    user = access.user
    return {
        "heat": {
            "auth_url": user.auth_url,
            "user_id": user.user_id,
            "password": user.password,
            "project_id": user.project_id,
            "stack_id": user.stack_id,
            "resource_name": user.resource_name,
        }
    }


TRANSPORTS: Mapping[str, Callable[[GuestAccess], dict[str, Json]]] = {
    POLL_SERVER_CFN: _signed_polls,
    POLL_SERVER_HEAT: _heat_polls,
    POLL_TEMP_URL: _presigned_polls,
}


@dataclass(frozen=True)
class ConfigTransport:
    """The transport of software configs; its field has the name of the option, as `Property` takes it."""

    default_software_config_transport: str = setting(
        "default_software_config_transport",
        POLL_SERVER_CFN,
        "Transport by which servers read their metadata if the template names none; the same for all "
        "processes.",
        choices=dict.fromkeys(TRANSPORTS, ""),
    )


REFUSED: Mapping[str, str] = {
    "ZAQAR_MESSAGE": "it needs the messaging service, which Stoker does not use",
}
"""Other transports of Heat's, and the reason why there are none."""
TRANSPORT = Property(
    "string",
    "Transport of the metadata to a server with software deployments. POLL_SERVER_CFN: requests signed with "
    "the server's keys. POLL_SERVER_HEAT: calls of the API, with an account that Stoker creates. "
    "POLL_TEMP_URL: requests to a signed URL. ZAQAR_MESSAGE is not supported.",
    default=ConfigTransport.default_software_config_transport,
    update_allowed=True,
    constraints=(AllowedValues(values=tuple(sorted({*TRANSPORTS, *REFUSED}))),),
    default_option="default_software_config_transport",
)
"""The property software_config_transport."""


def check_transport(properties: JsonMap) -> None:
    """Check that the property software_config_transport names a transport that is supported.

    :raises PropertyError: the transport needs a service that Stoker does not use.
    """
    check_offered(properties, "software_config_transport", TRANSPORTS, REFUSED)


def check_offered(properties: JsonMap, name: str, offered: Iterable[str], refused: Mapping[str, str]) -> None:
    """Check that the value of a property is none of those that Heat has and Stoker has not.

    :param refused: reasons by the values that are refused.
    :raises PropertyError: the value is one of `refused`.
    """
    value = str(properties.get(name))
    if value in refused:
        text = f"{value} is not supported: {refused[value]}; use one of {', '.join(offered)}"
        raise PropertyError(text, (name,))


def collect_config(
    transport: str, access: GuestAccess, default_collectors: Sequence[str] = ()
) -> dict[str, Json]:
    """Return the entries of ``os-collect-config``; they hold a secret.

    :param transport: a key of TRANSPORTS.
    :param default_collectors: collectors that are asked before the one of the transport.
    """
    entries = TRANSPORTS[transport](access)
    return {"collectors": [*default_collectors, *entries, LOCAL], **entries}


def guest_metadata(metadata: JsonMap, entries: JsonMap, deployments: Sequence[Json]) -> dict[str, Json]:
    """Return the metadata that a guest reads.

    :param metadata: the metadata of the server's resource.
    :param entries: entries of `collect_config`; the template's entries for other collectors stay.
    :param deployments: the configs that are deployed to the server.
    """
    section = metadata.get("os-collect-config")
    settings = section if isinstance(section, Mapping) else {}
    return {**metadata, "os-collect-config": {**settings, **entries}, "deployments": list(deployments)}
