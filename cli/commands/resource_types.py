"""``stoker-manage type``: the resource types, and the services of the cloud that they need."""

import typing
from collections.abc import Callable, Iterator

from ...resources.registry import ResourceRegistry
from ..config.client_options import client_options
from ..config.sections import Settings
from ..wiring.environment_files import installed_types, with_operator_files
from ..wiring.trusts import NoCatalog, own_catalog
from .base import AdminError, conf_of
from .columns import WithFooter

COLUMNS = ("Type", "Service", "Endpoint")


class TypeList(WithFooter):
    """List the resource types, and whether the cloud has the services that they need.

    The service catalog is that of the service's own account at Keystone.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        text = "only types that cannot be used, because the cloud lacks the service"
        parser.add_argument("--unavailable", action="store_true", help=text)
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        conf = conf_of(self)
        if Settings(conf).auth.has_keystone:
            try:
                has_service = own_catalog(conf, client_options(conf))
            except NoCatalog as error:
                raise AdminError(str(error)) from error
        else:
            has_service = _no_cloud
            self.footer = ["[api] auth_strategy is none: there is no cloud"]
        registry = with_operator_files(installed_types(conf), conf)
        rows = list(rows_of(registry.usable, has_service))
        return COLUMNS, [row for row in rows if not parsed.unavailable or row[2] == "no"]


def _no_cloud(service_type: str) -> bool:
    return False


def rows_of(registry: ResourceRegistry, has_service: Callable[[str], bool]) -> Iterator[tuple[str, str, str]]:
    """Yield each type, its service, and whether that has an endpoint; "" for a type that needs none."""
    answers: dict[str, bool] = {}
    for name in registry.names():
        plugin = registry.get(name)
        if plugin.service is None or plugin.works_without_cloud:
            yield name, "", ""
            continue
        if plugin.service not in answers:
            answers[plugin.service] = has_service(plugin.service)
        yield name, plugin.service, "yes" if answers[plugin.service] else "no"
