"""The templates of a checkout, with everything that a client sends with them."""

import dataclasses
import fnmatch
import functools
import io
import pathlib
import typing
import urllib.request
import urllib.response
from collections.abc import Iterator, Mapping, Sequence

import yaml
from harness.cloud.choosing import OUTSIDE_NETWORK, PLACES, THINGS, SampleParameter
from harness.cloud.uses import Reader, Schemas, Use, Uses
from heatclient.common import template_utils

Json = typing.Any
SUFFIXES = (".yaml", ".yml", ".template", ".hot", ".json")


@dataclasses.dataclass(frozen=True)
class Overrides:
    """The words of a file of parameters about a template.

    :ivar parameters: values that differ from what is chosen.
    :ivar change: parameters of the update; None: one is chosen.
    :ivar environment: path of an environment, from the checkout's root.
    :ivar broken_outputs: names of outputs that cannot be evaluated, with Heat neither.
    :ivar skip: reason for not trying the template; None: it is tried.
    """

    parameters: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    change: Mapping[str, Json] | None = None
    environment: str | None = None
    broken_outputs: Sequence[str] = ()
    skip: str | None = None


@dataclasses.dataclass(frozen=True)
class Sample:
    """A template with everything that a client sends with it.

    :ivar name: path of the template in the checkout.
    :ivar types: types of the resources of the template and of its files.
    :ivar schemas: schemas of Stoker's types.
    """

    name: str
    template: Json
    files: Mapping[str, str]
    environment: Mapping[str, Json]
    types: frozenset[str]
    overrides: Overrides
    schemas: Schemas

    @functools.cached_property
    def uses(self) -> Sequence[Use]:
        """The places that get values."""
        aliases = self.environment.get("resource_registry") or {}
        return list(Uses(self.schemas, self.files, aliases).of(self.template))

    @functools.cached_property
    def declared(self) -> Sequence[SampleParameter]:
        """Its parameters."""
        definitions = self.template.get("parameters") or {}
        return [
            SampleParameter(name, definition, [use for use in self.uses if use.parameter == name])
            for name, definition in definitions.items()
        ]

    def parameters(self) -> dict[str, Json]:
        """Values for all parameters that name something of a cloud, or have no default."""
        set_already = {**self.environment.get("parameters", {})}
        chosen = {
            parameter.name: value
            for parameter in self.declared
            if parameter.name not in set_already and (value := parameter.value()) is not None
        }
        return {**set_already, **chosen, **self.overrides.parameters}

    def named_objects(self) -> Iterator[tuple[str, str]]:
        """Kinds, named by their constraints, and names of the objects that it needs."""
        parameters = self.parameters()
        for values in (parameters, self.change() or {}):
            for parameter in self.declared:
                kind = parameter.kind()
                if kind in THINGS and isinstance(value := values.get(parameter.name), str | int):
                    yield kind, str(value)
        for use in self.uses:
            if use.parameter is None and isinstance(use.value, str) and use.value:
                yield from _named_by(use)
        for value in parameters.values():
            yield from ((kind, name) for kind, name in THINGS.items() if name == value)

    def change(self) -> dict[str, Json] | None:
        """Parameters of which one has another value; None where none can be chosen."""
        present = self.parameters()
        if self.overrides.change is not None:
            return {**present, **self.overrides.change}
        for parameter in sorted(self.declared, key=lambda parameter: parameter.rank):
            value = present.get(parameter.name, parameter.definition.get("default"))
            if (changed := parameter.different(value)) is not None:
                return {**present, parameter.name: changed}
        return None


def _named_by(use: Use) -> Iterator[tuple[str, str]]:
    """Yield the thing that a literal value names."""
    placed = [kind for pattern, kind in PLACES if pattern.search(use.place)]
    if OUTSIDE_NETWORK in placed:
        yield OUTSIDE_NETWORK, use.value
        return
    for kind in [*placed, *(rule.get("custom_constraint") for rule in use.constraints)]:
        if kind in THINGS:
            yield kind, use.value


class _CheckoutAddress(urllib.request.BaseHandler):
    """Reads the addresses below a checkout's public one from the checkout."""

    handler_order = 100

    def __init__(self, address: str, root: pathlib.Path) -> None:
        self._address = address.rstrip("/")
        self._root = root

    def https_open(self, request: urllib.request.Request) -> typing.Any:
        """Return the file; None: another handler opens the address."""
        if not request.full_url.startswith(f"{self._address}/"):
            return None
        path = self._root / request.full_url.removeprefix(f"{self._address}/")
        response: typing.Any = urllib.response.addinfourl(
            io.BytesIO(path.read_bytes()), {}, request.full_url, 200
        )
        response.msg = "OK"
        return response


@dataclasses.dataclass(frozen=True)
class Checkout:
    """A checkout of somebody's repository.

    :ivar overrides: path or pattern -> fields of :class:`Overrides`; later ones have precedence.
    :ivar schemas: schemas of Stoker's types.
    :ivar address: web address of the root, by which templates name each other; empty: none does.
    """

    root: pathlib.Path
    overrides: Mapping[str, Json]
    schemas: Schemas
    address: str = ""

    def samples(self, only: str) -> Iterator[Sample | tuple[str, str]]:
        """Yield all HOT templates; a name and a reason for those that no client can send.

        :param only: pattern of the paths.
        """
        if self.address:
            opener = urllib.request.build_opener(_CheckoutAddress(self.address, self.root))
            urllib.request.install_opener(opener)
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if path.suffix not in SUFFIXES or not path.is_file() or not fnmatch.fnmatch(name, only):
                continue
            template = read(path)
            if not isinstance(template, dict) or "heat_template_version" not in template:
                continue
            try:
                yield self._sample(name)
            except Exception as error:  # noqa: BLE001 - the client says in many ways that a file is missing
                yield name, f"{type(error).__name__}: {error}"

    def _sample(self, name: str) -> Sample:
        fields: dict[str, Json] = {}
        for pattern, value in self.overrides.items():
            if fnmatch.fnmatch(name, pattern):
                fields.update(value)
        overrides = Overrides(**fields)
        files, parsed = template_utils.process_template_path(str(self.root / name))
        environment: Json = {}
        if overrides.environment:
            more, environment = template_utils.process_environment_and_files(
                str(self.root / overrides.environment)
            )
            files = {**files, **more}
        texts = {address: _text(content) for address, content in files.items()}
        types = frozenset(_all_types(parsed, texts, environment.get("resource_registry") or {}))
        return Sample(name, parsed, texts, environment, types, overrides, self.schemas)


def read(path: pathlib.Path) -> Json:
    """The YAML in a file; None where it has none.

    What begins with "{{" or the like is a template of another program.
    """
    try:
        return yaml.load(path.read_text(), Reader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError):
        return None


def _text(content: str | bytes) -> str:
    """Return a file as it is sent; the client has it in bytes, as Base64, where it is no text."""
    return content.decode() if isinstance(content, bytes) else content


def _all_types(template: Json, files: Mapping[str, str], aliases: Mapping[str, Json]) -> Iterator[str]:
    """Yield the types that the templates need of Stoker: those that no template of theirs defines."""
    templates = [template]
    for text in files.values():
        document = yaml.load(text, Reader) if "heat_template_version" in text else None  # noqa: S506
        templates += [document] if isinstance(document, dict) else []
    for document in templates:
        yield from (kind for kind in _types(document) if kind not in aliases and "::" in kind)


def _types(document: Json) -> Iterator[str]:
    """Yield the types of the resources in a template, those of groups' members, too."""
    pending = [document.get("resources")]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                yield value["type"]
            pending += [item for key, item in value.items() if key not in ("metadata", "config")]
        elif isinstance(value, list):
            pending += value
