"""OS::Heat::RandomString: creates a secret once and keeps it."""

import secrets
import string
from collections.abc import Iterator

from ...shapes import Json, JsonMap
from ...template.constraints import AllowedValues, Range
from ..contract import (
    Attribute,
    Done,
    Property,
    PropertyError,
    ResourceType,
    ResourceView,
    Step,
    StepContext,
    SupportStatus,
)

CLASSES = {
    "lettersdigits": string.ascii_letters + string.digits,
    "letters": string.ascii_letters,
    "lowercase": string.ascii_lowercase,
    "uppercase": string.ascii_uppercase,
    "digits": string.digits,
    "hexdigits": string.digits + "ABCDEF",
    "octdigits": string.octdigits,
}
DEFAULT_CLASSES = [{"class": "lettersdigits", "min": 1}]

Need = tuple[str, int]
"""Characters, and how many of them the string has at least."""


def _minimum(noun: str) -> Property:
    return Property(
        "integer",
        f"Minimum number of characters from this {noun}.",
        default=1,
        constraints=(Range(minimum=1, maximum=512),),
    )


class RandomString(ResourceType):
    """The create generates the string and stores it in `data`; a repeated create may make another one."""

    type_name = "OS::Heat::RandomString"
    description = (
        "A random string, for passwords and other secrets.\n\n"
        "Its characters come from classes such as lettersdigits and from sequences of your own. It is made "
        "once and stays the same until the resource is replaced."
    )
    support_status = SupportStatus(version="2014.1")
    properties_schema = {
        "length": Property(
            "integer",
            "Length of the string, in characters.",
            default=32,
            constraints=(Range(minimum=1, maximum=512),),
        ),
        "sequence": Property(
            "string",
            "Character class; the old form of character_classes.",
            constraints=(AllowedValues(values=tuple(CLASSES)),),
            support_status=SupportStatus(
                "HIDDEN",
                version="5.0.0",
                previous=SupportStatus("DEPRECATED", version="2014.2", message="Use character_classes."),
            ),
        ),
        "character_classes": Property(
            "list",
            "Character classes that the string is made of.",
            default=DEFAULT_CLASSES,
            schema=Property(
                "map",
                "Character class.",
                schema={
                    "class": Property(
                        "string",
                        "Name of the class.",
                        default="lettersdigits",
                        constraints=(AllowedValues(values=tuple(CLASSES)),),
                    ),
                    "min": _minimum("character class"),
                },
            ),
        ),
        "character_sequences": Property(
            "list",
            "Custom sets of characters that the string is made of.",
            schema=Property(
                "map",
                "Set of characters.",
                schema={
                    "sequence": Property(
                        "string",
                        "Characters of the set.",
                        required=True,
                    ),
                    "min": _minimum("sequence"),
                },
            ),
        ),
        "salt": Property(
            "string",
            "Salt: a change replaces the resource by a new string; the string does not depend on it.",
        ),
    }
    attributes_schema = {
        "value": Attribute(
            "Random string, the same as the reference.",
            "string",
            sensitive=True,
        )
    }

    def validate(self, properties: JsonMap) -> None:
        """Check the length against the minima.

        :raises PropertyError: the minima exceed the length, or there is no character.
        """
        if any(
            name not in properties
            for name in ("length", "sequence", "character_classes", "character_sequences")
        ):
            return
        needs = list(_needs(properties))
        if not needs or not all(characters for characters, _ in needs):
            raise PropertyError("There must be at least one character to choose from", ("character_classes",))
        if sum(minimum for _, minimum in needs) > properties["length"]:
            raise PropertyError(
                "The length is below the sum of the minima of all character classes and sequences",
                ("length",),
            )

    def handle_create(self, target: ResourceView, context: StepContext) -> Step:
        """Generate the string."""
        self.validate(target.properties)
        text = _generate(target.properties["length"], list(_needs(target.properties)))
        return Done(physical_id=target.physical_name, data={"value": text})

    def reference_id(self, target: ResourceView) -> Json:
        """Return the string; None for one that the template names by ``external_id``, as in Heat."""
        return target.data.get("value") if target.physical_id is not None else target.name

    def attribute_values(self, target: ResourceView) -> JsonMap:
        """Return the string."""
        return {"value": target.data.get("value")}


def _needs(properties: JsonMap) -> Iterator[Need]:
    for item in properties["character_sequences"] or ():
        yield item["sequence"], item["min"]
    classes = properties["character_classes"] or []
    if properties["sequence"]:
        # The old property names a class; the default must not add letters to it.
        required = [] if classes == DEFAULT_CLASSES else classes
        classes = [*required, {"class": properties["sequence"], "min": 1}]
    for item in classes:
        yield CLASSES[item["class"]], item["min"]


def _generate(length: int, needs: list[Need]) -> str:
    """Return a string with the minimum of each need, the rest from all of them, in random order."""
    every = sorted({character for characters, _ in needs for character in characters})
    chosen = [
        secrets.choice(sorted(set(characters))) for characters, minimum in needs for _ in range(minimum)
    ]
    chosen += [secrets.choice(every) for _ in range(length - len(chosen))]
    secrets.SystemRandom().shuffle(chosen)
    return "".join(chosen)
