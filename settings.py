"""Settings: each is declared once, as a field of a frozen dataclass beside its use.

`cli/` makes the options of the configuration from the declarations, and hands down the dataclasses with the
operator's values.  This module knows neither the house nor the library of options.
"""

import dataclasses
import enum
import typing
from collections.abc import Mapping

Seconds = typing.Annotated[float, "seconds"]
Bytes = typing.Annotated[int, "bytes"]
"""Numbers with a unit; one without is a count."""
KEY = "setting"
"""The key of a declaration in the metadata of its field."""


class Form(enum.Enum):
    """The form of a value, where its type does not say it."""

    PLAIN = enum.auto()
    HOST = enum.auto()
    PORT = enum.auto()
    URL = enum.auto()
    HTTP_URL = enum.auto()


@dataclasses.dataclass(frozen=True)
class Setting:
    """The declaration of a setting; its field has the type, the unit and the default.

    :ivar option: name of the option in the operator's file.
    :ivar help: meaning, unit, trade-off, and the meaning of 0 and of no value, for operators.
    :ivar least, most: bounds of a number; None: it has none.
    :ivar choices: allowed values, each with its effect, "" where the name says it; None: any value.
    :ivar pattern: regular expression that a text must match.
    :ivar default_text: description of a default that depends on the host.
    :ivar is_secret: the value is shown nowhere.
    :ivar is_mutable: a new value is taken over without a restart.
    :ivar is_repeated: each entry of a list is a line of its own.
    :ivar ignores_case: a choice may be written in small letters or capitals.
    :ivar former: further name of the option, in files that are taken over from Heat.
    """

    option: str
    help: str
    least: float | None = None
    most: float | None = None
    choices: Mapping[str, str] | None = None
    form: Form = Form.PLAIN
    pattern: str | None = None
    default_text: str | None = None
    is_secret: bool = False
    is_mutable: bool = False
    is_repeated: bool = False
    ignores_case: bool = False
    former: str | None = None


def given(default: object) -> typing.Any:
    """Return the field of a dataclass with settings whose value is handed to it, as its own are elsewhere."""
    return dataclasses.field(default=default, metadata={KEY: None})


def setting(option: str, default: object, text: str, **traits: typing.Any) -> typing.Any:
    """Return the field of a dataclass that declares a setting.

    :param text: the help of `Setting`.
    :param traits: its further attributes, by name.
    """
    return dataclasses.field(default=default, metadata={KEY: Setting(option, text, **traits)})
