"""Options made of declared settings, and settings read back from the configuration."""

import dataclasses
import functools
import ipaddress
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence

from oslo_config import cfg
from oslo_config import types as option_types

from ...settings import KEY, Form, Setting

Network = ipaddress.IPv4Network | ipaddress.IPv6Network
T = typing.TypeVar("T")


class NetworkType(option_types.ConfigType):
    """An address, or a network."""

    def __init__(self) -> None:
        super().__init__(type_name="network")

    def __call__(self, value: str) -> Network:
        """Return the network of an entry; an address is a network of its own.

        :raises ValueError: it is neither.
        """
        try:
            wide = ipaddress.ip_network(value, strict=False)
        except ValueError:
            hint = "; a comment needs a line of its own" if "#" in value else ""
            raise ValueError(
                f"{value!r} is not an address or a network: write 10.0.0.5 or 10.0.0.0/24, several separated "
                f"by commas{hint}"
            ) from None
        address = ipaddress.ip_address(value.partition("/")[0])
        if address != wide.network_address:
            raise ValueError(
                f"{value!r} is an address within a network: write {wide} for the network, or {address}"
            )
        return wide

    def _formatter(self, value: object) -> str:
        return str(value)


@dataclasses.dataclass(frozen=True)
class DeclaredSetting:
    """A setting with the field that declares it.

    :ivar value_type: type of the values, without None and the unit.
    :ivar unit: unit of a number; "": none.
    """

    setting: Setting
    default: typing.Any
    value_type: typing.Any
    unit: str

    def to_option(self) -> cfg.Opt:
        """Return the option."""
        setting = self.setting
        traits: dict[str, typing.Any] = {
            "default": list(self.default) if isinstance(self.default, tuple) else self.default,
            "help": setting.help,
            "secret": setting.is_secret,
            "mutable": setting.is_mutable,
            "sample_default": setting.default_text,
            "deprecated_name": setting.former,
        }
        if setting.is_repeated:
            return cfg.MultiOpt(setting.option, item_type=option_types.MultiString(), **traits)
        return cfg.Opt(setting.option, type=self.option_type(), **traits)

    def option_type(self) -> option_types.ConfigType:
        """Return the type of the option's values."""
        setting = self.setting
        if typing.get_origin(self.value_type) is Sequence:
            [entry] = typing.get_args(self.value_type)
            return option_types.List(item_type=NetworkType() if entry == Network else None)
        if self.value_type in _NUMBERS and setting.form is Form.PLAIN:
            return _NUMBERS[self.value_type](min=setting.least, max=setting.most)
        if self.value_type is bool:
            return option_types.Boolean()
        if setting.form is not Form.PLAIN:
            return _FORMS[setting.form]()
        choices = [(name, effect or None) for name, effect in (setting.choices or {}).items()]
        return option_types.String(
            choices=choices or None, regex=setting.pattern, ignore_case=setting.ignores_case
        )


_NUMBERS: Mapping[typing.Any, Callable[..., option_types.ConfigType]] = {
    int: option_types.Integer,
    float: option_types.Float,
}
_FORMS: Mapping[Form, Callable[..., option_types.ConfigType]] = {
    Form.HOST: option_types.HostAddress,
    Form.PORT: functools.partial(option_types.Port, type_name="port value"),
    Form.URL: option_types.URI,
    Form.HTTP_URL: functools.partial(option_types.URI, schemes=["http", "https"]),
}


def fields_of(owner: typing.Any) -> Mapping[str, DeclaredSetting | type]:
    """Return the fields of a dataclass that have settings, each with one or with a dataclass of several."""
    hints = typing.get_type_hints(owner, include_extras=True)
    fields: dict[str, DeclaredSetting | type] = {}
    for field in dataclasses.fields(owner):
        hint = hints[field.name]
        if (setting := field.metadata.get(KEY)) is not None:
            fields[field.name] = DeclaredSetting(setting, field.default, *_type_and_unit(hint))
        elif (
            KEY not in field.metadata
            and isinstance(hint, type)
            and dataclasses.is_dataclass(hint)
            and fields_of(hint)
        ):
            fields[field.name] = hint
    return fields


def _type_and_unit(hint: typing.Any) -> tuple[typing.Any, str]:
    """Return the type of a field's values without None, and their unit; "": none."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        [hint] = [member for member in typing.get_args(hint) if member is not types.NoneType]
    if typing.get_origin(hint) is typing.Annotated:
        return typing.get_args(hint)
    return hint, ""


def settings_of(owner: type) -> Iterator[DeclaredSetting]:
    """Yield the settings of a dataclass in their order, with those of the dataclasses in it."""
    for declared in fields_of(owner).values():
        if isinstance(declared, DeclaredSetting):
            yield declared
        else:
            yield from settings_of(declared)


def read_section(section: typing.Any, owner: type[T]) -> T:
    """Return a dataclass with the values of a section's options; other fields keep their defaults.

    :raises ValueError: values contradict each other, as the dataclass says.
    """
    values: dict[str, typing.Any] = {}
    for name, declared in fields_of(owner).items():
        if isinstance(declared, DeclaredSetting):
            value = section[declared.setting.option]
            values[name] = tuple(value) if isinstance(value, list) else value
        else:
            values[name] = read_section(section, declared)
    return owner(**values)
