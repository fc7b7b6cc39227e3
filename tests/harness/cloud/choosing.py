"""The values that the parameters of somebody's template get."""

import dataclasses
import re
import typing
from collections.abc import Mapping, Sequence

import hypothesis
from harness.cloud.contents import EXTERNAL, IMAGE, VOLUME_TYPE
from harness.cloud.uses import Use
from hypothesis import strategies

Json = typing.Any
FLAVOR = "nova.flavor"
FLAVORS = ("m1.tiny", "m1.small")
"""The one that is given at first, and the one of the update."""
KEY = "templates-key"
NETWORK = "templates-net"
SUBNET = "templates-subnet"
ROUTER = "templates-router"
GROUP = "default"
VOLUME = "templates-volume"
PORT = "templates-port"
SERVER = "templates-server"
"""Names of what a project has before a template is tried; the last three only where it wants them."""
OUTSIDE_NETWORK = "external network"
"""The kind of networks to the outside; "neutron.network" is one of the project's own."""
THINGS: Mapping[str, str] = {
    "glance.image": IMAGE,
    FLAVOR: FLAVORS[0],
    "nova.keypair": KEY,
    "nova.server": SERVER,
    "neutron.network": NETWORK,
    OUTSIDE_NETWORK: EXTERNAL,
    "neutron.subnet": SUBNET,
    "neutron.router": ROUTER,
    "neutron.port": PORT,
    "neutron.security_group": GROUP,
    "cinder.volume": VOLUME,
    "cinder.vtype": VOLUME_TYPE,
}
"""Values that satisfy the custom constraints that name things of a cloud."""
TEXTS: Mapping[str, str] = {
    "net_cidr": "10.77.0.0/24",
    "gateway": "10.77.0.1",
    "name server": "10.77.0.2",
    "pool start": "10.77.0.20",
    "ip_addr": "10.77.0.30",
    "ip_or_cidr": "10.77.0.31",
    "pool end": "10.77.0.200",
    "mac_addr": "fa:16:3e:12:34:56",
    "dns_name": "some",
    "rel_dns_name": "some",
    "dns_domain": "example.com.",
    "timezone": "UTC",
    "expiration": "2099-01-01T00:00:00",
    "public key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f some",
}
"""Values that satisfy the others, and values that name no thing."""
ZONE = "nova"
_PLACES: Sequence[tuple[str, str]] = (
    (r"floating_network(_id)?$|gateway_info\.network(_id)?$", OUTSIDE_NETWORK),
    (r"network_id$", "neutron.network"),
    (r"subnet_id$", "neutron.subnet"),
    (r"router_id$", "neutron.router"),
    (r"availability_zone$|availability_zone_hints$", "zone"),
    (r"security_groups$", "neutron.security_group"),
    (r"gateway_ip$", "gateway"),
    (r"allocation_pools\.start$", "pool start"),
    (r"allocation_pools\.end$", "pool end"),
    (r"dns_nameservers$", "name server"),
    (r"(instance_uuid|OS::Nova::Server external_id)$", "nova.server"),
    (r"OS::Cinder::Volume external_id$", "cinder.volume"),
    (r"OS::Nova::KeyPair public_key$", "public key"),
)
PLACES = [(re.compile(pattern), kind) for pattern, kind in _PLACES]
"""Values for properties without a sufficient constraint."""
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
    (r"cidr", "net_cidr"),
    (r"(^|_)(ip|ip_address)$", "ip_addr"),
    (r"availability_zone|(^|_)az$", "zone"),
)
"""Names by which parameters without any known use are known."""
TEXT = re.compile(r"user_data|\.str_replace|\.str_split")
"""Places that say nothing of what a value is."""
KINDS = {*THINGS, *TEXTS, "zone"}
OUTSIDE = re.compile(r"public|ext|float|pool|fip|provider|outside|internet")
TRIED = ("Some1text2", "some", "1", "10.77.0.40", "some@example.com", "http://127.0.0.1/some")


@dataclasses.dataclass(frozen=True)
class SampleParameter:
    """A parameter of a template, with its definition and uses.

    :ivar definition: definition in the template.
    :ivar uses: uses of the parameter, in the template and in nested ones.
    """

    name: str
    definition: Json
    uses: Sequence[Use]

    @property
    def rules(self) -> list[Json]:
        """Its own constraints, and those of the properties that get its value."""
        constraints = list(self.definition.get("constraints") or ())
        return constraints + [rule for use in self.uses for rule in use.constraints]

    def kind(self) -> str | None:
        """The kind of value that it gets, as custom constraints are named; None: any."""
        placed = [kind for use in self.uses for pattern, kind in PLACES if pattern.search(use.place)]
        used = [rule.get("custom_constraint") for use in self.uses for rule in use.constraints]
        for kind in (*placed, *used):
            if kind in KINDS:
                return kind
        kinds = [rule.get("custom_constraint") for rule in self.definition.get("constraints") or ()]
        for kind in kinds:
            if kind in KINDS:
                return self._inside_or_outside(kind)
        if self.uses and not all(TEXT.search(use.place) for use in self.uses):
            return None
        if "cidr" in str(self.definition.get("description")).lower():
            return "net_cidr"
        named = next((kind for pattern, kind in NAMES if re.search(pattern, self.name.lower())), None)
        return named if named is None else self._inside_or_outside(named)

    def _inside_or_outside(self, kind: str) -> str:
        text = f"{self.name} {self.definition.get('description', '')}".lower()
        outside = kind == "neutron.network" and OUTSIDE.search(text)
        return OUTSIDE_NETWORK if outside else kind

    def value(self) -> Json:
        """Return a value for it; None: its default is right."""
        has_default = "default" in self.definition
        if self.definition.get("type") == "number" and not has_default:
            return self._invented()  # Of a thing it is the name.
        if (named := self._named()) is not None and self._may_replace_default():
            return self._shaped(named) if self._allows(named) else self._invented()
        if has_default and self.definition["default"] is not None:
            return None
        return self._invented()

    @property
    def rank(self) -> int:
        """The lower, the more an update to another value does."""
        return 0 if self.kind() == FLAVOR else 1 if "name" in self.name else 2

    def different(self, present: Json) -> Json:
        """Return another value that an update may give it; None: none is known."""
        kind = self.kind()
        listed = self._allowed()
        if self.definition.get("immutable") or kind not in (None, FLAVOR):
            return None
        if listed or kind == FLAVOR:
            return next((value for value in listed or FLAVORS if value != present), None)
        if self.definition.get("type") == "number":
            return self._next_number(present)
        free = self.definition.get("type") == "string" and all("length" in rule for rule in self.rules)
        return f"{present}-2" if "name" in self.name and free and present else None

    def _next_number(self, present: Json) -> int | None:
        """Return the next whole number, if it may be that."""
        ranges = [rule["range"] for rule in self.rules if "range" in rule]
        number = int(present or 0) + 1
        return number if all(number <= bounds.get("max", number) for bounds in ranges) else None

    def _may_replace_default(self) -> bool:
        default = self.definition.get("default")
        kind = self.definition.get("type")
        if kind in ("number", "boolean", "json") or isinstance(default, dict | list):
            return default is None
        return True

    def _named(self) -> str | None:
        """Return the thing that it names, or the text that fits; a text of the template's own fits, too."""
        kind = self.kind()
        if kind == "zone":
            return ZONE
        if kind in THINGS:
            return THINGS[kind]
        return None if self.definition.get("default") or kind is None else TEXTS[kind]

    def _shaped(self, value: str) -> str:
        """Return the value, or a list with it for one who takes an item of it."""
        return ",".join([value] * 3) if any(use.indexed for use in self.uses) else value

    def _allowed(self) -> Sequence[Json]:
        """Return the values that a constraint lists."""
        lists = [rule["allowed_values"] for rule in self.rules if "allowed_values" in rule]
        return lists[0] if lists else ()

    def _allows(self, value: str) -> bool:
        return not self._allowed() or value in self._allowed()

    def _invented(self) -> Json:
        """Return any value that the constraints allow."""
        rules: dict[str, Json] = {}
        for rule in reversed(self.rules):
            rules.update(rule)
        if "allowed_values" in rules:
            return rules["allowed_values"][0]
        kind = self.definition.get("type", "string")
        numeric = any(use.schema.get("type") in ("integer", "number") for use in self.uses)
        if kind == "number" or (kind == "string" and numeric):
            return (rules.get("range") or {}).get("min", 1)
        if kind == "comma_delimited_list":
            return self._shaped("1" if numeric else "one")
        if kind != "string":
            return {"boolean": False, "json": {}}.get(kind, "one")
        return self._text(rules.get("length") or {})

    def _text(self, length: Mapping[str, int]) -> str:
        """Return a text of this length that matches all patterns."""
        patterns = [re.compile(rule["allowed_pattern"]) for rule in self.rules if "allowed_pattern" in rule]

        def fits(text: str) -> bool:
            long_enough = length.get("min", 0) <= len(text) <= length.get("max", 255)
            return long_enough and all(pattern.fullmatch(text) for pattern in patterns)

        for text in TRIED:
            cut = text.ljust(length.get("min", 0), "x")[: length.get("max", 255)]
            if fits(cut):
                return cut
        return hypothesis.find(strategies.from_regex(patterns[0], fullmatch=True), fits)
