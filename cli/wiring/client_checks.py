"""The check of what the sections of calls to services name: addresses, regions, files."""

import pathlib
import urllib.parse
from collections.abc import Iterator, Mapping

import requests
from oslo_config import cfg

from ...keystone.client_options import ServiceOptions
from ..config.client_options import GROUP, SERVICES, client_options
from ..config.errors import WrongConfiguration
from .trusts import NoCatalog, own_catalog

WITHIN = 5.0
"""Seconds within which an address must answer."""


def differing(conf: cfg.ConfigOpts) -> Mapping[str, tuple[ServiceOptions, ServiceOptions]]:
    """Return the settings of services that are not the common ones, each with the common ones, by section.

    Those of all services are compared with the built-in ones.

    :raises WrongConfiguration: an option is wrong.
    """
    options = client_options(conf)
    sections = {GROUP: (options.default, ServiceOptions())}
    for name, service in SERVICES.items():
        sections[f"{GROUP}_{name}"] = (options.of(service), options.default)
    return {section: pair for section, pair in sections.items() if pair[0] != pair[1]}


def check_clients(conf: cfg.ConfigOpts, section: str) -> None:
    """Check a section: its files exist, its address answers, and the catalog has endpoints for it.

    :raises WrongConfiguration: something is wrong.
    """
    own, common = differing(conf)[section]
    faults = [
        *_files(own),
        *_address(own),
        # A cloud need not have each service that a section is for.
        *(_endpoints(conf, section, own) if _place(own) != _place(common) else ()),
    ]
    if faults:
        raise WrongConfiguration("; ".join(f"[{section}] {fault}" for fault in faults))


def _place(settings: ServiceOptions) -> tuple[str, str | None]:
    return settings.interface, settings.region_name


def _files(settings: ServiceOptions) -> Iterator[str]:
    certificate, key = settings.cert if isinstance(settings.cert, tuple) else (settings.cert, None)
    for option, path in (("ca_file", settings.verify), ("cert_file", certificate), ("key_file", key)):
        if isinstance(path, str) and not pathlib.Path(path).exists():
            yield f"{option}: there is no file {path}"


def _address(settings: ServiceOptions) -> Iterator[str]:
    if settings.endpoint_override is None:
        return
    # The path may have the id of a project: any answer shows that somebody is there.
    address = urllib.parse.urlsplit(settings.endpoint_override)
    verify = True if settings.verify is None else settings.verify
    try:
        requests.get(
            f"{address.scheme}://{address.netloc}/", verify=verify, cert=settings.cert, timeout=WITHIN
        ).close()
    except (requests.RequestException, OSError) as error:
        yield f"endpoint_override: it does not answer: {error}"


def _endpoints(conf: cfg.ConfigOpts, section: str, settings: ServiceOptions) -> Iterator[str]:
    try:
        has_service = own_catalog(conf, client_options(conf))
    except NoCatalog:
        return  # The check of the account says why.
    services = [service for name, service in SERVICES.items() if section in (GROUP, f"{GROUP}_{name}")]
    if not any(map(has_service, services)):
        region = f" in region {settings.region_name}" if settings.region_name else ""
        fault = f"the service catalog has no {settings.interface} endpoint{region}"
        yield f"region_name, endpoint_type: {fault}"
