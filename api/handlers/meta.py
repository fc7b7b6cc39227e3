"""Handlers of what the installation is and knows: types, functions, services, versions."""

import typing

from ...planning.requests import TypeForbidden
from ...resources import rendering
from ...resources.plugin import ResourceType
from ...rpc.contract import WORK_TOPIC
from ...template import versions
from ...template.errors import TemplateError
from ..errors import Fault, bad_request, not_found
from ..request import Reply, Request
from ..views import stacks

Json = typing.Any


def list_types(call: Request) -> Reply:
    """GET /resource_types"""
    catalogue = call.services.catalogue
    try:
        names = catalogue.matching(call.one("name"), call.one("version"), call.one("support_status"))
    except ValueError as error:
        raise bad_request(str(error)) from error
    names = [name for name in names if call.may_use(name)]
    if not call.flag("with_description"):
        return Reply({"resource_types": names})
    described = [{"resource_type": name, "description": catalogue.get(name).description} for name in names]
    return Reply({"resource_types": described})


def show_type(call: Request) -> Reply:
    """GET /resource_types/NAME"""
    name = call.path["type_name"]
    body = rendering.resource_type_schema(name, _declared(call, name))
    if call.flag("with_description"):
        body["description"] = call.services.catalogue.get(name).description
    return Reply(body)


def type_template(call: Request) -> Reply:
    """GET /resource_types/NAME/template"""
    name, wanted = call.path["type_name"], call.one("template_type") or "cfn"
    declared = _declared(call, name)
    if wanted == "hot":
        return Reply(rendering.resource_type_template(name, declared, "hot"))
    if wanted == "cfn":
        return Reply(rendering.resource_type_template(name, declared, "cfn"))
    raise bad_request(f'Invalid template type "{wanted}", valid types are: cfn, hot')


def _declared(call: Request, name: str) -> type[ResourceType]:
    """:raises TypeForbidden: it is not the caller's to use."""
    found = type(call.services.catalogue.get(name))
    if not call.may_use(name):
        raise TypeForbidden(name)
    return found


def list_versions(call: Request) -> Reply:
    """GET /template_versions"""
    return Reply({"template_versions": versions.list_versions()})


def list_functions(call: Request) -> Reply:
    """GET /template_versions/VERSION/functions"""
    name = call.path["template_version"]
    try:
        found = versions.list_functions(name, conditions=call.flag("with_condition_func"))
    except TemplateError as error:
        raise not_found("Template Version", name) from error
    return Reply({"template_functions": found})


def build_info(call: Request) -> Reply:
    """GET /build_info"""
    build = dict(call.services.build)
    return Reply({"api": build, "engine": build})


def services(call: Request) -> Reply:
    """GET /services"""
    roll = call.services.roll()
    shown = [
        {
            "id": item.incarnation or item.host,
            "binary": "stoker-conductor",
            "hostname": item.host,
            "host": item.host,
            "engine_id": item.incarnation,
            "topic": WORK_TOPIC,
            "report_interval": 1,
            "status": "unknown" if isinstance(roll, str) else "up" if item.host in roll.hosts else "down",
            "created_at": stacks.iso(item.started_at),
            "updated_at": stacks.iso(item.heartbeat_at),
            "deleted_at": None,
            "state": item.state,
            "shards_owned": item.shards_owned,
        }
        for item in call.services.orders.services()
    ]
    return Reply({"services": shown})


def api_versions(call: Request) -> Reply:
    """GET /"""
    version = {"id": "v1.0", "status": "CURRENT", "links": [stacks.link(f"{call.base_url}/v1/")]}
    return Reply({"versions": [version]}, 300)


def health(call: Request) -> Reply:
    """GET /healthcheck: 503 also while the service still answers but is about to end."""
    if call.services.draining():
        raise Fault(503, "ServiceUnavailable", "draining: this service is about to end.")
    if (ailment := call.services.ailment()) is not None:
        raise Fault(503, "ServiceUnavailable", f"database unavailable: {ailment}.")
    return Reply("OK")


def no_software(call: Request) -> Reply:
    """Software configs and deployments, which Heat's client knows."""
    raise Fault(501, "NotSupported", "Software configs and software deployments are not supported by Stoker")
