"""Handlers that show the installation: types, functions, services, versions, health."""

from ...engine.planning.requests import TypeForbidden, TypeUnavailable
from ...resources import rendering
from ...resources.contract.plugin import ResourceType
from ...template import versions as language
from ...template.errors import TemplateError
from ..errors import Fault, bad_request, not_found
from ..operations import Request
from ..reply import Reply
from ..views.versions import api_versions


def versions(request: Request) -> Reply:
    """Answer GET /."""
    return api_versions(request)


def list_types(request: Request) -> Reply:
    """Answer GET /resource_types."""
    registry = request.services.registry.offered
    try:
        names = registry.matching(request.one("name"), request.one("version"), request.one("support_status"))
    except ValueError as error:
        raise bad_request(str(error)) from error
    names = [name for name in names if request.may_use(name) and _missing_service(request, name) is None]
    if not request.flag("with_description"):
        return Reply({"resource_types": names})
    described = [{"resource_type": name, "description": registry.get(name).description} for name in names]
    return Reply({"resource_types": described})


def _missing_service(request: Request, name: str) -> str | None:
    """Return the service that a type needs and the caller's cloud does not have."""
    service = request.services.registry.offered.service_of(name)
    return None if service is None or request.cloud is None or request.cloud.has_service(service) else service


def show_type(request: Request) -> Reply:
    """Answer GET /resource_types/NAME; as in Heat it refuses a type whose service is not available."""
    name = request.path["type_name"]
    plugin = _usable(request, name)
    if (service := _missing_service(request, name)) is not None:
        raise TypeUnavailable(name, service)
    described = request.flag("with_description")
    return Reply(rendering.resource_type_schema(name, plugin, with_description=described))


def type_template(request: Request) -> Reply:
    """Answer GET /resource_types/NAME/template."""
    name = request.path["type_name"]
    kind = request.one("template_type") or "cfn"
    plugin = _usable(request, name)
    if kind == "hot":
        return Reply(rendering.resource_type_template(name, plugin, "hot"))
    if kind == "cfn":
        return Reply(rendering.resource_type_template(name, plugin, "cfn"))
    raise bad_request(f'Invalid template type "{kind}", valid types are: cfn, hot')


def _usable(request: Request, name: str) -> ResourceType:
    """Return a type.

    :raises TypeForbidden: the caller may not use it.
    """
    offered = request.services.registry.offered.get(name)
    if not request.may_use(name):
        raise TypeForbidden(name)
    return offered


def list_versions(request: Request) -> Reply:
    """Answer GET /template_versions."""
    return Reply({"template_versions": language.list_versions()})


def list_functions(request: Request) -> Reply:
    """Answer GET /template_versions/VERSION/functions."""
    name = request.path["template_version"]
    try:
        functions = language.list_functions(name, conditions=request.flag("with_condition_func"))
    except TemplateError as error:
        raise not_found("Template Version", name) from error
    return Reply({"template_functions": functions})


def build_info(request: Request) -> Reply:
    """Answer GET /build_info."""
    build = dict(request.services.build)
    return Reply({"api": build, "engine": build})


def health(request: Request) -> Reply:
    """Answer GET /healthcheck: 503 also while the service still answers but is about to end."""
    if request.services.draining():
        raise Fault(503, "ServiceUnavailable", "draining: this service is about to end.")
    if (problem := request.services.health_problem()) is not None:
        raise Fault(503, "ServiceUnavailable", f"{problem}.")
    return Reply("OK")
