"""Settings: each option comes from one declaration, and each declaration says its unit and bounds."""

import ast
import collections
import logging
import pathlib
import re
import typing
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pytest
from harness.sources import ROOT, Source, source
from oslo_config import cfg
from stoker.cli.config.client_options import GROUP, SERVICES
from stoker.cli.config.declared import DeclaredSetting, fields_of, read_section, settings_of
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.config.options import GROUPS, list_opts
from stoker.cli.config.sections import Settings, make_options, sections
from stoker.db.connections import DatabaseLimits, DatabaseSettings
from stoker.sealing.sealer import Sealer, fingerprint
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


def test_each_line_has_a_key_and_the_log_of_the_options_has_none(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    keys = [Sealer.generate_key() for _ in range(2)]
    url = "[coordination]\nbackend_url = redis://:pa55@host\n"
    conf = configured(tmp_path, url + "[secrets]\n" + "".join(f"key = {key}\n" for key in keys))
    assert Sealer(Settings(conf).sealing.keys).fingerprints == [fingerprint(key) for key in keys]
    with caplog.at_level(logging.DEBUG):
        conf.log_opt_values(logging.getLogger(), logging.DEBUG)
    assert "secrets.key" in caplog.text
    assert "pa55" not in caplog.text, "the password of a backend"
    assert [key for key in keys if key in caplog.text] == []


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


def test_each_option_comes_from_a_declaration_or_is_a_named_exception() -> None:
    declared = {section: {option.dest for option in options} for section, options in make_options().items()}
    others = {
        section
        for section, options in GROUPS.items()
        if {option.dest for option in options} - declared.get(section, set())
    }
    assert others == {f"{GROUP}_{service}" for service in SERVICES}


SHARED = {0, 1, None, "", ()}
"""Values that say nothing by themselves, such as no limit."""


def _literal(node: ast.expr | None) -> typing.Any:
    """Return the value of a literal, or of a product of numbers; None: it is another expression."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        factors = (_literal(node.left), _literal(node.right))
        return None if None in factors else factors[0] * factors[1]
    return node.value if isinstance(node, ast.Constant) else None


def _defaults_of(module: Source) -> Iterator[tuple[int, str, typing.Any]]:
    """Yield the literal defaults of fields and parameters: line, name, value."""
    for cls in module.nodes(ast.ClassDef):
        for field in cls.body:
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                yield field.lineno, field.target.id, _literal(field.value)
    for function in module.nodes(ast.FunctionDef):
        arguments = [*function.args.posonlyargs, *function.args.args][::-1]
        pairs = [*zip(arguments, function.args.defaults[::-1], strict=False)]
        pairs += zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
        yield from ((function.lineno, argument.arg, _literal(value)) for argument, value in pairs)


def _fields(owner: type) -> Iterator[tuple[str, DeclaredSetting]]:
    """Yield the settings of a dataclass and of those in it, with the names of their fields."""
    for name, item in fields_of(owner).items():
        if isinstance(item, DeclaredSetting):
            yield name, item
        else:
            yield from _fields(item)


def _is_product(path: pathlib.Path) -> bool:
    return path.relative_to(ROOT).parts[0] not in ("tests", "benchmarks", "doc", "tools", ".venv", "build")


OTHER_THINGS: Mapping[str, str] = {
    "api/shared_views.py idle": "seconds that a view is kept, not a transaction",
}
"""Defaults that are those of settings by chance, as ``file name``, each with the reason."""


def test_the_default_of_a_setting_is_written_once() -> None:
    """A second one is forgotten when the first one changes, and documents tell only of the first."""
    defaults: dict[str, set[typing.Any]] = collections.defaultdict(set)
    for section in sections():
        for name, item in _fields(section.owner):
            for word in (name, item.setting.option):
                defaults[word].add(item.default)
    paths = sorted(path for path in (ROOT / "settings.py").parent.glob("*/**/*.py") if _is_product(path))
    offenders = [
        f"{path.relative_to(ROOT)}:{line} {name} = {value!r}"
        for path in paths
        for line, name, value in _defaults_of(source(path))
        if value not in SHARED and value in defaults[name]
    ]
    assert [line for line in offenders if re.sub(r":[0-9]+| = .*", "", line) not in OTHER_THINGS] == []


def test_declared_settings_are_read_as_objects_only() -> None:
    """A value that is read by its option's name is checked by no dataclass, and no type says what it is."""
    options = {(name, option.dest) for name, declared in make_options().items() for option in declared}
    offenders = [
        f"{path.relative_to(ROOT)}:{node.lineno} {ast.unparse(node)}"
        for path in sorted((ROOT / "cli").rglob("*.py"))
        for node in source(path).nodes(ast.Attribute)
        if isinstance(node.value, ast.Attribute)
        and ast.unparse(node.value.value).endswith("conf")
        and (node.value.attr, node.attr) in options
    ]
    assert offenders == []
