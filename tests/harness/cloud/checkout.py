"""The templates of a checkout, and the values that their parameters get."""

import dataclasses
import fnmatch
import pathlib
import re
import typing
from collections.abc import Iterator, Mapping, Sequence

import yaml
from harness.cloud.contents import EXTERNAL, IMAGE, VOLUME_TYPE
from heatclient.common import template_utils

Json = typing.Any
SUFFIXES = (".yaml", ".yml", ".template", ".hot")
FLAVORS = ("m1.tiny", "m1.small")
"""What is given at first, and by the update."""
KEY, NETWORK, SUBNET, ROUTER = "templates-key", "templates-net", "templates-subnet", "templates-router"
GROUP, VOLUME, PORT, SERVER = "default", "templates-volume", "templates-port", "templates-server"
"""Names of what a project has before a template is tried; the last three only where it wants them."""
CONSTRAINTS: Mapping[str, str] = {
    "glance.image": IMAGE,
    "nova.flavor": FLAVORS[0],
    "nova.keypair": KEY,
    "nova.server": SERVER,
    "neutron.subnet": SUBNET,
    "neutron.router": ROUTER,
    "neutron.port": PORT,
    "neutron.security_group": GROUP,
    "cinder.volume": VOLUME,
    "cinder.vtype": VOLUME_TYPE,
}
"""What satisfies a custom constraint, but for networks: there are two."""
NAMES: Sequence[tuple[str, str]] = (
    (r"(flavor|instance_type|size_name)", "nova.flavor"),
    (r"(^|_)image(_id|_name|_ref)?$|image_(name|id)", "glance.image"),
    (r"(^|_)(ssh_?)?key(_?name|_?pair)?$|keyname|key_?pair|ssh_key", "nova.keypair"),
    (r"^(server|instance)(_id)?$", "nova.server"),
    (r"subnet(_id)?(_?name)?$", "neutron.subnet"),
    (r"router(_id)?$", "neutron.router"),
    (r"(^|_)(sec_?grps?|security_?groups?|secgroups?)(_id|_name)?s?$", "neutron.security_group"),
    (r"net(work)?(_?id|_?uuid|_?name)?$|floating_?(ip_)?pool$", "neutron.network"),
    (r"(^|_)volume(_id|_uuid)$|^volume$", "cinder.volume"),
    (r"volume_?type", "cinder.vtype"),
    (r"(^|_)port(_id)$", "neutron.port"),
)
"""Names by which parameters without a constraint are known."""
USES: Mapping[str, Mapping[str, str]] = {
    "OS::Nova::Server": {"image": "glance.image", "flavor": "nova.flavor", "key_name": "nova.keypair"},
    "OS::Cinder::Volume": {"image": "glance.image"},
    "OS::Neutron::FloatingIP": {"floating_network": "neutron.network"},
}
"""Type -> property -> the kind of thing that it names."""
OUTSIDE = re.compile(r"public|ext|float|pool|fip|provider|outside|internet")
NEW = re.compile(r"new |create", re.IGNORECASE)
"""Descriptions of names that the template gives itself; images, flavors and key pairs are there before."""
BEFORE = ("glance.image", "nova.flavor", "nova.keypair")


@dataclasses.dataclass(frozen=True)
class Given:
    """What a file of parameters says of a template.

    :ivar parameters: values that differ from what is chosen.
    :ivar change: those of the update; None: one is chosen.
    :ivar environment: path of an environment, from the checkout's root.
    :ivar skip: why it is not tried; None: it is.
    """

    parameters: Mapping[str, Json] = dataclasses.field(default_factory=dict)
    change: Mapping[str, Json] | None = None
    environment: str | None = None
    skip: str | None = None


@dataclasses.dataclass(frozen=True)
class Sample:
    """A template with everything that a client sends with it.

    :ivar name: its path in the checkout.
    :ivar types: of its resources and those of the files that come with it.
    """

    name: str
    template: Json
    files: Mapping[str, str]
    environment: Mapping[str, Json]
    types: frozenset[str]
    given: Given

    @property
    def definitions(self) -> Mapping[str, Json]:
        """Its parameters by name."""
        return self.template.get("parameters") or {}

    def parameters(self) -> dict[str, Json]:
        """Values for all parameters that name something of a cloud, or have no default."""
        set_already = {**self.environment.get("parameters", {})}
        chosen = {
            name: value
            for name, definition in self.definitions.items()
            if name not in set_already and (value := _value(name, definition)) is not None
        }
        return {**set_already, **chosen, **self.given.parameters}

    def things(self) -> Iterator[tuple[str, str]]:
        """Kinds, named by their constraints, and names of the things that it wants to find."""
        parameters = self.parameters()
        for name, definition in self.definitions.items():
            kind = _constraint(name, definition)
            if kind is not None and isinstance(parameters.get(name), str):
                yield kind, parameters[name]
        for resource in (self.template.get("resources") or {}).values():
            given = resource.get("properties")
            for name, kind in USES.get(resource.get("type"), {}).items():
                if isinstance(given, dict) and isinstance(given.get(name), str):
                    yield kind, given[name]

    def change(self) -> dict[str, Json] | None:
        """Parameters of which one has another value; None where none can be chosen."""
        present = self.parameters()
        if self.given.change is not None:
            return {**present, **self.given.change}
        for name, value in present.items():
            if value == FLAVORS[0]:
                return {**present, name: FLAVORS[1]}
        for name, definition in self.definitions.items():
            text = str(present.get(name, definition.get("default", "")))
            if "name" in name and definition.get("type") == "string" and _is_free(name, definition) and text:
                return {**present, name: f"{text}-2"}
        return None


class _Loader(yaml.SafeLoader):
    """Reads any template; dates stay text."""


_Loader.add_constructor("tag:yaml.org,2002:timestamp", lambda loader, node: loader.construct_scalar(node))


def read(path: pathlib.Path) -> Json:
    """The YAML in a file; None where it has none.

    What begins with "{{" or the like is a template of another program.
    """
    try:
        return yaml.load(path.read_text(), _Loader)  # noqa: S506
    except (yaml.YAMLError, UnicodeDecodeError):
        return None


def samples(root: pathlib.Path, given: Mapping[str, Json], only: str) -> Iterator[Sample | tuple[str, str]]:
    """All HOT templates below a folder; a name and a reason for those that no client can send.

    :param given: path or pattern -> the fields of :class:`Given`; later ones have precedence.
    :param only: pattern of the paths.
    """
    for path in sorted(root.rglob("*")):
        name = str(path.relative_to(root))
        if path.suffix not in SUFFIXES or not fnmatch.fnmatch(name, only):
            continue
        template = read(path)
        if not isinstance(template, dict) or "heat_template_version" not in template:
            continue
        fields: dict[str, Json] = {}
        for pattern, value in given.items():
            if fnmatch.fnmatch(name, pattern):
                fields.update(value)
        try:
            yield _sample(root, name, template, Given(**fields))
        except Exception as error:  # noqa: BLE001 - the client says in many ways that a file is missing
            yield name, f"{type(error).__name__}: {error}"


def _sample(root: pathlib.Path, name: str, template: Json, given: Given) -> Sample:
    files, parsed = template_utils.process_template_path(str(root / name))
    environment: Json = {}
    if given.environment:
        more, environment = template_utils.process_environment_and_files(str(root / given.environment))
        files = {**files, **more}
    mapped = environment.get("resource_registry", {})
    types = set(_types(template))
    for text in files.values():
        with_it = yaml.load(text, _Loader) if "heat_template_version" in text else None  # noqa: S506
        types |= set(_types(with_it)) if isinstance(with_it, dict) else set()
    local = {kind for kind in types if kind in mapped or "::" not in kind}
    return Sample(name, parsed, files, environment, frozenset(types - local), given)


def _types(found: Json) -> Iterator[str]:
    """Yield the types of the resources in a template, those of groups' members, too."""
    pending = [found.get("resources")]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            if isinstance(value.get("type"), str):
                yield value["type"]
            pending += [item for key, item in value.items() if key not in ("metadata", "config")]
        elif isinstance(value, list):
            pending += value


def _value(name: str, definition: Json) -> Json:
    """Return a value for a parameter; None: its default is right."""
    kind = _constraint(name, definition)
    free = not isinstance(definition.get("default"), (dict, list))
    if kind is not None and free and definition.get("type") not in ("number", "boolean", "json"):
        outside = OUTSIDE.search(f"{name} {definition.get('description', '')}".lower())
        found = CONSTRAINTS.get(kind) or (EXTERNAL if outside else NETWORK)
        return found if _allows(definition, found) else _invented(definition)
    return None if "default" in definition else _invented(definition)


def _allows(definition: Json, value: str) -> bool:
    allowed = [rule["allowed_values"] for rule in _rules(definition) if "allowed_values" in rule]
    return all(value in values for values in allowed)


def _rules(definition: Json) -> Sequence[Json]:
    return definition.get("constraints") or ()


def _constraint(name: str, definition: Json) -> str | None:
    """Return which kind of thing a parameter names; None: no thing of a cloud."""
    for rule in _rules(definition):
        if "custom_constraint" in rule:
            kind: str = rule["custom_constraint"]
            return kind if kind in CONSTRAINTS or kind == "neutron.network" else None
    kind = next((kind for pattern, kind in NAMES if re.search(pattern, name.lower())), None)
    its_own = "default" in definition and NEW.search(str(definition.get("description", "")))
    return None if its_own and kind not in BEFORE else kind


def _is_free(name: str, definition: Json) -> bool:
    return (
        not _rules(definition) and _constraint(name, definition) is None and not definition.get("immutable")
    )


def _invented(definition: Json) -> Json:
    """Return any value that the constraints allow."""
    rules = {name: value for rule in _rules(definition) for name, value in rule.items()}
    if "allowed_values" in rules:
        return rules["allowed_values"][0]
    kind = definition.get("type", "string")
    if kind == "number":
        return (rules.get("range") or {}).get("min", 1)
    if kind != "string":
        return {"boolean": False, "json": {}, "comma_delimited_list": "one"}.get(kind, "one")
    length = rules.get("length") or {}
    return "Some1text2".ljust(length.get("min", 0), "x")[: length.get("max", 255)]
