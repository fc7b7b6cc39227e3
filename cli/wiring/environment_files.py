"""Reading the environments and templates that an operator has for all stacks."""

import dataclasses
import pathlib
import urllib.parse
import urllib.request
from collections.abc import Mapping

from oslo_config import cfg

from ...resources.contract.plugin import ResourceType
from ...resources.nested.operator_template import template_type
from ...resources.registry import ResourceRegistry
from ...shapes import Json
from ...template.errors import TemplateError
from ...template.language import is_template_name
from ...template.load import load_document
from ...template.operator_environment import merge_operator_files
from ..config.errors import WrongConfiguration
from ..config.sections import Settings

MOST_BYTES = 1024 * 1024
"""Size of a file above which it is no environment or template that somebody has written."""


def installed_types(conf: cfg.ConfigOpts) -> ResourceRegistry:
    """Return the registry of the installed types, with their defaults from options."""
    settings = Settings(conf)
    values = {
        **dataclasses.asdict(settings.config_transport),
        **dataclasses.asdict(settings.signal_transport),
        "region_name": settings.clients.region_name,
    }
    return ResourceRegistry.installed(defaults=values)


def with_operator_files(registry: ResourceRegistry, conf: cfg.ConfigOpts) -> ResourceRegistry:
    """Return the registry of types with the types of the files in [stacks] environment_dir and template_dir.

    :raises WrongConfiguration: a file cannot be read or is wrong; the text names it.
    """
    settings = Settings(conf).operator_files
    shared = pathlib.Path(settings.template_dir)
    paths = sorted(path for path in shared.rglob("*") if is_template_name(path.name) and path.is_file())
    names = {path.relative_to(shared).as_posix(): path.absolute().as_uri() for path in paths}
    folder = pathlib.Path(settings.environment_dir)
    environments = [(str(path), _read(path)) for path in sorted(folder.glob("[!.]*")) if path.is_file()]
    try:
        templates = {path.absolute().as_uri(): _read(path) for path in paths}
        for name, text in environments:
            templates |= _named_templates(name, text)
        operator = merge_operator_files(environments, templates, names)
        if operator is None:
            return registry
        types = {address: _type_of(address, text) for address, text in templates.items()}
        mapped = operator.mapped_templates().items()
        return registry.with_operator(operator, {name: types[address] for name, address in mapped})
    except TemplateError as error:
        where, *more = error.path or ("[stacks] environment_dir",)
        raise WrongConfiguration(f"{where}: {TemplateError(error.message, more)}") from error


def _type_of(address: str, text: str) -> ResourceType:
    try:
        return template_type(text)
    except TemplateError as error:
        raise TemplateError(str(error), [address]) from error


def _named_templates(name: str, text: str) -> Mapping[str, str]:
    """Return the texts of the templates that an environment names by their addresses (``file://…``)."""
    try:
        document = load_document(text, "environment")
    except TemplateError as error:
        raise TemplateError(str(error), [name]) from error
    registry: Json = document.get("resource_registry")
    targets = registry.values() if isinstance(registry, Mapping) else ()
    parts = {target: urllib.parse.urlsplit(target) for target in targets if isinstance(target, str)}
    return {
        target: _read(pathlib.Path(urllib.request.url2pathname(part.path)))
        for target, part in parts.items()
        if part.scheme == "file" and is_template_name(target)
    }


def _read(path: pathlib.Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise WrongConfiguration(f"{path}: it is larger than {MOST_BYTES} bytes")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise WrongConfiguration(f"{path}: it cannot be read: {error}") from error
