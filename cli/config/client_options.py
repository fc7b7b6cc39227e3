"""Options of the calls to OpenStack's services: [clients] for all, and [clients_SERVICE] for one."""

import re
from collections.abc import Mapping
from dataclasses import replace

from oslo_config import cfg, types

from ...keystone.client_options import ClientOptions, ServiceOptions
from .errors import WrongConfiguration

GROUP = "clients"
SERVICES: Mapping[str, str] = {
    "aodh": "alarm",
    "barbican": "key-manager",
    "blazar": "reservation",
    "cinder": "block-storage",
    "designate": "dns",
    "glance": "image",
    "heat": "orchestration",
    "ironic": "baremetal",
    "keystone": "identity",
    "magnum": "container-infrastructure-management",
    "manila": "shared-file-system",
    "mistral": "workflow",
    "neutron": "network",
    "nova": "compute",
    "octavia": "load-balancer",
    "placement": "placement",
    "swift": "object-store",
    "trove": "database",
    "zaqar": "message",
    "zun": "application-container",
}
"""The name of each service in sections, as Heat has it, and its official type."""
_MICROVERSION = re.compile("[0-9]{1,3}[.][0-9]{1,3}")
_INTERFACE = types.String(regex="^(public|internal|admin)(URL)?$")
"""Heat takes them with ``URL``, too."""
_SECONDS = types.Float(min=0)
_COUNT = types.Integer(min=0, max=20)

COMMON = (
    (
        "endpoint_type",
        _INTERFACE,
        "public",
        "Interface of the services' endpoints in the service catalog: public, internal or admin.",
    ),
    (
        "region_name",
        types.String(),
        None,
        "Region of the services' endpoints. Unset: the first endpoint of the service catalog.",
    ),
    (
        "ca_file",
        types.String(),
        None,
        "File with the certificates of authorities that sign the services' certificates. Unset: cafile "
        "of [trustee], else those that the system trusts.",
    ),
    ("cert_file", types.String(), None, "File with a client certificate to send to the services."),
    ("key_file", types.String(), None, "File with the key of cert_file. Unset: cert_file holds it, too."),
    (
        "insecure",
        types.Boolean(),
        False,
        "Do not verify the services' certificates. An attacker on the network can then read tokens and pose "
        "as a service.",
    ),
    (
        "connect_retries",
        _COUNT,
        2,
        "Number of times that a call is repeated at once when the connection failed, but did not time out. "
        "Calls that create something are never repeated: their step is retried, and first searches for what "
        "was created.",
    ),
    (
        "status_code_retries",
        _COUNT,
        0,
        "Number of times that a call is repeated at once when the service answered 503. 0: the step is "
        "retried, which holds no thread between two attempts.",
    ),
    (
        "timeout",
        _SECONDS,
        60.0,
        "Seconds that a service may take to accept a connection, and to begin its answer. A thread of the "
        "conductor waits meanwhile. 0: no limit.",
    ),
)
"""Name, type, default and help of the options that all sections have."""


def _for_one(name: str, kind: types.ConfigType) -> cfg.Opt:
    # Without a default: an option that a section leaves out is that of [clients].
    return cfg.Opt(name, type=kind, help=f"Overrides {name} of [{GROUP}] for this service.")


def _own(service: str) -> list[cfg.Opt]:
    # Heat's names, so that its sections can be taken over.
    former = {"heat": ["url"], "keystone": ["auth_uri"]}.get(service, [])
    return [
        *(_for_one(name, kind) for name, kind, _, _ in COMMON),
        cfg.URIOpt(
            "endpoint_override",
            schemes=["http", "https"],
            deprecated_opts=[cfg.DeprecatedOpt(name, group=f"{GROUP}_{service}") for name in former],
            help="Address of this service in place of the service catalog's. %(project_id)s in it is "
            "replaced by the id of the stack's project.",
        ),
        cfg.StrOpt(
            "max_microversion",
            help="The newest microversion to ask this service for, such as 2.79. Unset: each resource "
            "type asks for the one that it needs. With an older one some properties cannot be used.",
        ),
    ]


CLIENTS = [
    *(cfg.Opt(name, type=kind, default=default, help=text) for name, kind, default, text in COMMON),
    cfg.BoolOpt(
        "check_parameters",
        default=True,
        mutable=True,
        help="Whether a request that creates, updates, previews or validates a stack is refused at once if a "
        "custom constraint such as glance.image is not met. The services are asked with the user's token, "
        "for one second at most. False: the resource that uses the value fails.",
    ),
]
CLIENT_GROUPS: dict[str, list[cfg.Opt]] = {
    GROUP: CLIENTS,
    **{f"{GROUP}_{service}": _own(service) for service in SERVICES},
}
"""The options of each section."""


def client_options(conf: cfg.ConfigOpts) -> ClientOptions:
    """Return the settings for the calls to services.

    :raises WrongConfiguration: a key has no certificate, or a microversion is none.
    """
    default = _options(conf, GROUP)
    by_type = {}
    for service, service_type in SERVICES.items():
        service_options = _options(conf, f"{GROUP}_{service}")
        if service_options != default:
            by_type[service_type] = service_options
    return ClientOptions(default, by_type)


def _options(conf: cfg.ConfigOpts, group: str) -> ServiceOptions:
    def value(name: str) -> object:
        setting = conf[group][name]
        return conf[GROUP][name] if setting is None else setting

    cert = value("cert_file")
    key = value("key_file")
    if key and not cert:
        raise WrongConfiguration(f"[{group}] key_file: cert_file is missing, the certificate of this key")
    options = ServiceOptions(
        interface=str(value("endpoint_type")).removesuffix("URL"),
        region_name=_text(value("region_name")),
        verify=False if value("insecure") else _text(value("ca_file")),
        cert=(str(cert), str(key)) if cert and key else _text(cert),
        connect_retries=int(str(value("connect_retries"))),
        status_code_retries=int(str(value("status_code_retries"))),
        timeout=float(str(value("timeout"))) or None,
    )
    if group == GROUP:
        return options
    section = conf[group]
    newest = conf[group].max_microversion
    if newest and not _MICROVERSION.fullmatch(newest):
        raise WrongConfiguration(f"[{group}] max_microversion: must be like 2.79, not {newest}")
    # Heat's word for the project.
    address = (section.endpoint_override or "").replace("%(tenant_id)s", "%(project_id)s")
    return replace(options, endpoint_override=address or None, max_microversion=newest or None)


def _text(value: object) -> str | None:
    return str(value) if value else None
