"""The configuration that `stoker-manage config from-heat` makes of Heat's."""

import json
import pathlib
import stat
import subprocess
import sys

import pytest
from harness.programs import BIN, run
from stoker.cli.commands.config import in_file, known_options
from stoker.cli.config.heat_options import OF_LIBRARIES, OPTIONS, HeatOption, heat_option

HEAT = pathlib.Path(sys.prefix) / "heat" / "bin" / "python"
LIST = """
import importlib.metadata, json
points = importlib.metadata.entry_points(group="oslo.config.opts")
print(json.dumps([
    [point.name, str(getattr(group, "name", group) or "DEFAULT"), opt.dest]
    for point in points if point.name.startswith(("heat.", "oslo.log", "oslo.concurrency", "oslo.reports"))
    for group, opts in point.load()() for opt in opts
]))
"""
KNOWN = known_options(["password"])
CONFIG = """\
[DEFAULT]
transport_url = rabbit://heat:mq-secret@mq:5672/
stack_action_timeout = 7200
max_resources_per_stack = -1
auth_encryption_key = notgood but just long enough i t
log_dir = /var/log/heat
debug = true
num_engine_workers = 4
[clients_heat]
url = http://heat:8004/v1/%(tenant_id)s
[clients_manila]
insecure = true
[keystone_authtoken]
auth_type = password
password = ks-secret
[trustee]
auth_type = password
password = trustee-secret
[yaql]
memory_quota = 20000
[cors]
allowed_origin = https://horizon
"""


@pytest.fixture(scope="module")
def options() -> dict[tuple[str, str], bool]:
    """All options that a real Heat lists; true: its own."""
    if not HEAT.exists():
        pytest.fail(f"{HEAT} is missing: run `make heat`", pytrace=False)
    outcome = subprocess.run([HEAT, "-W", "ignore", "-c", LIST], capture_output=True, text=True, check=True)
    listed = json.loads(outcome.stdout)
    # A library's option may have the name of one of Heat's own.
    return {(section, name): False for _, section, name in listed} | {
        (section, name): True for point, section, name in listed if point.startswith("heat.")
    }


@pytest.mark.needs("heat")
def test_the_table_has_each_option_of_heat_and_no_other(options: dict[tuple[str, str], bool]) -> None:
    assert sum(options.values()) > 200
    assert [key for key, is_own in options.items() if is_own and heat_option(*key) is None] == []
    used = {option for key in options if (option := heat_option(*key)) is not None}
    assert [option for option in (*OPTIONS, *OF_LIBRARIES) if option not in used] == []


@pytest.mark.needs("heat")
def test_each_option_of_stoker_that_it_names_exists(options: dict[tuple[str, str], bool]) -> None:
    missing = []
    for section, name in options:
        option = heat_option(section, name)
        target = option.target_of(section, name) if option else ""
        target_section, _, target_name = target.partition(".")
        if target and target_name not in KNOWN.get(target_section, {}):
            missing.append((section, name, target))
    assert missing == []


def test_an_option_without_a_counterpart_has_a_reason() -> None:
    assert [option for option in OPTIONS if not option.target and not option.note] == []


@pytest.fixture
def translated(tmp_path: pathlib.Path) -> tuple[pathlib.Path, str]:
    """The written file, and what the command prints."""
    (tmp_path / "heat.conf").write_text(CONFIG)
    path = tmp_path / "stoker.conf"
    command = [BIN / "stoker-manage", "config", "from-heat", tmp_path / "heat.conf", path]
    outcome = run(command)
    assert outcome.returncode == 0, outcome.stderr
    return path, outcome.stdout + outcome.stderr


def test_the_written_file_has_the_options_under_their_new_names(translated: tuple[pathlib.Path, str]) -> None:
    path, _ = translated
    assert path.read_text().splitlines()[3:] == [
        "[DEFAULT]",
        "transport_url = rabbit://heat:mq-secret@mq:5672/",
        "debug = true",
        "",
        "[stacks]",
        "timeout = 7200",
        "max_resources = 0",
        "",
        "[clients_heat]",
        "endpoint_override = http://heat:8004/v1/%(project_id)s",
        "",
        "[clients_manila]",
        "insecure = true",
        "",
        "[keystone_authtoken]",
        "auth_type = password",
        "password = ks-secret",
        "",
        "[trustee]",
        "auth_type = password",
        "password = trustee-secret",
        "",
        "[yaql]",
        "memory_quota = 20000",
    ]
    assert list(in_file(path, KNOWN)) == []


def test_what_is_left_out_is_named_without_its_value(translated: tuple[pathlib.Path, str]) -> None:
    path, output = translated
    lines = output.splitlines()
    beginnings = [line.partition(": ")[2].partition(":")[0] for line in lines if line.startswith("left out")]
    assert beginnings == [
        "[DEFAULT] auth_encryption_key",
        "[DEFAULT] log_dir",
        "[DEFAULT] num_engine_workers",
        "[cors] allowed_origin",
    ]
    assert "secret" not in output.replace("[secrets] key", "")
    assert "notgood" not in output
    assert lines[-1] == f"{path} has 11 options; 4 were left out"


def test_the_written_file_is_its_owners_and_replaces_no_other(translated: tuple[pathlib.Path, str]) -> None:
    path, _ = translated
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    command = [BIN / "stoker-manage", "config", "from-heat", path.with_name("heat.conf"), path]
    outcome = run(command)
    assert (outcome.returncode, path.read_text()) == (1, text)
    assert "File exists" in outcome.stderr


@pytest.mark.parametrize(
    ("key", "target"),
    [
        (("clients", "insecure"), "clients.insecure"),
        (("clients_nova", "ca_file"), "clients_nova.ca_file"),
        (("trustee", "username"), "trustee.username"),
    ],
)
def test_a_pattern_keeps_what_it_stands_for(key: tuple[str, str], target: str) -> None:
    option = heat_option(*key)
    assert isinstance(option, HeatOption)
    assert option.target_of(*key) == target
