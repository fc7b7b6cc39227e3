"""Resources of a template as rules see them, before anything is made."""

import typing
from dataclasses import dataclass, field

from stoker.resources.contract import KnownResource, Made, Property
from stoker.shapes import Json
from stoker.template.constraints import Constraint
from stoker.template.residual import node


@dataclass(frozen=True)
class Watching(Constraint):
    """A constraint that notes the values which are read."""

    seen: list[Json] = field(default_factory=list)
    types: typing.ClassVar[frozenset[str]] = frozenset({"string"})
    name: typing.ClassVar[str] = "watching"

    def problem(self, value: Json) -> str | None:
        self.seen.append(value)
        return None

    def view(self) -> dict[str, Json]:
        return {}

    def definition(self) -> dict[str, Json]:
        return {}


def test_only_the_properties_that_a_rule_asks_for_are_read_and_each_once() -> None:
    watching = Watching()
    text = Property("string", constraints=(watching,))
    schema = {"a": text, "b": text, "c": Property("string", default="usual", constraints=(watching,))}
    resource = KnownResource("r", "T", schema, {"a": "one", "b": "two"})
    assert watching.seen == []
    assert resource.values.get("a") == resource.thing("a") == "one"
    assert watching.seen == ["one"]
    assert dict(resource.values) == {"a": "one", "b": "two", "c": "usual"}
    assert watching.seen == ["one", "two", "usual"]


def test_what_is_not_known_is_absent_and_a_reference_names_its_resource() -> None:
    schema = {
        "known": Property("string"),
        "none": Property("string"),
        "open": Property("string"),
        "many": Property("list", schema=Property("string")),
        "maps": Property("list", schema=Property("map", schema={"port": Property("string")})),
    }
    made = node("get_resource", "other")
    trees = {"known": "x", "open": made, "many": ["y", made], "maps": [{"port": made}]}
    resource = KnownResource("r", "T", schema, trees)
    assert resource.thing("many", 1) == resource.thing("maps", 0, "port") == Made("other")
    assert resource.thing("open") == Made("other")
    assert dict(resource.values) == {"known": "x", "none": None, "many": ["y", None], "maps": [{}]}
    assert len(resource.values) == 4
    assert "open" not in resource.values
    assert resource.thing("none") is resource.thing("nothing", 3) is resource.thing("known", "deeper") is None
