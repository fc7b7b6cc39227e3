"""The calls to OpenStack's services: [clients] for all, and [clients_SERVICE] for one."""

import dataclasses
from collections.abc import Iterator, Mapping

from oslo_config import cfg

from ...keystone.client_options import ClientOptions, ClientSettings, OneServiceSettings, ServiceOptions
from .declared import DeclaredSetting, fields_of, read_section, settings_of
from .errors import WrongConfiguration
from .sections import Settings

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
FORMER: Mapping[str, str] = {"heat": "url", "keystone": "auth_uri"}
"""Heat's names of endpoint_override, so that its sections can be taken over."""


def service_options() -> dict[str, list[cfg.Opt]]:
    """Return the options of the services' sections, by section."""
    return {f"{GROUP}_{service}": list(_options_of(service)) for service in SERVICES}


def _options_of(service: str) -> Iterator[cfg.Opt]:
    for declared in settings_of(ClientSettings):
        # Without a default: an option that a section leaves out is that of [clients].
        text = f"Overrides {declared.setting.option} of [{GROUP}] for this service."
        setting = dataclasses.replace(declared.setting, help=text)
        yield dataclasses.replace(declared, setting=setting, default=None).to_option()
    for declared in settings_of(OneServiceSettings):
        former = FORMER.get(service) if declared.setting.option == "endpoint_override" else None
        setting = dataclasses.replace(declared.setting, former=former)
        yield dataclasses.replace(declared, setting=setting).to_option()


def client_options(conf: cfg.ConfigOpts) -> ClientOptions:
    """Return the settings for the calls to services.

    :raises WrongConfiguration: a key has no certificate, or a microversion is none.
    """
    common = Settings(conf).clients
    default = _service_options(common, OneServiceSettings())
    by_type = {}
    for service, service_type in SERVICES.items():
        section = conf[f"{GROUP}_{service}"]
        changes = {
            name: section[declared.setting.option]
            for name, declared in fields_of(ClientSettings).items()
            if isinstance(declared, DeclaredSetting) and section[declared.setting.option] is not None
        }
        try:
            own = read_section(section, OneServiceSettings)
            options = _service_options(dataclasses.replace(common, **changes), own)
        except ValueError as error:
            raise WrongConfiguration(f"[{GROUP}_{service}] {error}") from error
        if options != default:
            by_type[service_type] = options
    return ClientOptions(default, by_type)


def _service_options(settings: ClientSettings, own: OneServiceSettings) -> ServiceOptions:
    # Heat's word for the project.
    address = (own.endpoint_override or "").replace("%(tenant_id)s", "%(project_id)s")
    return ServiceOptions(
        interface=settings.interface.removesuffix("URL"),
        region_name=settings.region_name or None,
        endpoint_override=address or None,
        verify=False if settings.insecure else settings.ca_file or None,
        cert=settings.cert,
        connect_retries=settings.connect_retries,
        status_code_retries=settings.status_code_retries,
        timeout=settings.timeout or None,
        max_microversion=own.max_microversion or None,
    )
