"""Settings: each option comes from one declaration, and each declaration says its unit and bounds."""

import pathlib
import typing
from dataclasses import dataclass

import pytest
from oslo_config import cfg
from stoker.cli.config.declared import read_section, settings_of
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.config.options import list_opts
from stoker.cli.config.sections import Settings, sections
from stoker.db.connections import DatabaseLimits, DatabaseSettings
from stoker.settings import Bytes, Form, Seconds, setting

DECLARED = [
    (f"[{section.name}] {declared.setting.option}", declared)
    for section in sections()
    for declared in settings_of(section.owner)
]


def configured(tmp_path: pathlib.Path, text: str) -> cfg.ConfigOpts:
    """Return a configuration of its own with the lines of a file."""
    conf = cfg.ConfigOpts()
    for group, options in list_opts():
        conf.register_opts(options, group)
    file = tmp_path / "stoker.conf"
    file.write_text(text)
    conf([], default_config_files=[str(file)])
    return conf


def test_an_object_has_the_values_of_the_file_and_the_defaults_of_its_declarations(
    tmp_path: pathlib.Path,
) -> None:
    conf = configured(tmp_path, "[database]\npool_size = 3\nlock_timeout = 1\n")
    settings = Settings(conf).database
    assert settings == DatabaseSettings(pool_size=3, limits=DatabaseLimits(lock=1.0))


def test_values_that_contradict_each_other_are_named_with_their_section(tmp_path: pathlib.Path) -> None:
    conf = configured(tmp_path, "[database]\nlock_timeout = 30\n")
    with pytest.raises(WrongConfiguration, match=r"\[database\]: lock_timeout must be less than"):
        _ = Settings(conf).database


@dataclass(frozen=True)
class _Inner:
    retries: int = setting("inner_retries", 2, "Number of retries.", least=0, most=9)


@dataclass(frozen=True)
class _Outer:
    port: int = setting("port", 8004, "Port.", form=Form.PORT)
    url: str | None = setting("url", None, "Address.", form=Form.HTTP_URL)
    inner: _Inner = _Inner()
    pause: Seconds | None = setting("pause", None, "Seconds.", least=0.5)
    size: Bytes = setting("size", 10, "Bytes.")
    names: typing.Sequence[str] = setting("names", ("a", "b"), "Names.")
    keys: typing.Sequence[str] = setting("key", (), "Keys.", is_repeated=True, is_secret=True)
    mode: str = setting("mode", "on", "Mode.", choices={"on": "", "off": "nothing is done"})
    host: str = ""


def _of_outer(tmp_path: pathlib.Path, text: str) -> _Outer:
    conf = cfg.ConfigOpts()
    conf.register_opts([declared.to_option() for declared in settings_of(_Outer)], "outer")
    file = tmp_path / "outer.conf"
    file.write_text(f"[outer]\n{text}")
    conf([], default_config_files=[str(file)])
    return read_section(conf.outer, _Outer)


def test_each_type_of_a_field_becomes_a_type_of_an_option(tmp_path: pathlib.Path) -> None:
    assert _of_outer(tmp_path, "") == _Outer()
    text = "port = 1\nurl = http://a\ninner_retries = 9\npause = 1\nsize = 2\nnames = c,d\nmode = off\n"
    assert _of_outer(tmp_path, f"{text}key = x\nkey = y\n") == _Outer(
        1, "http://a", _Inner(9), 1.0, 2, ("c", "d"), ("x", "y"), "off"
    )


@pytest.mark.parametrize(
    "line",
    ["port = 70000", "url = ftp://a", "inner_retries = 10", "pause = 0.1", "size = x", "mode = away"],
)
def test_a_value_out_of_bounds_is_refused(tmp_path: pathlib.Path, line: str) -> None:
    with pytest.raises(cfg.ConfigFileValueError):
        _of_outer(tmp_path, line)


def test_the_help_of_a_number_names_its_unit() -> None:
    assert [name for name, declared in DECLARED if declared.unit not in declared.setting.help.lower()] == []
