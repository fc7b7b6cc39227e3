"""The page of what Stoker has been run with names what the tests run with."""

import pathlib
import re
import typing

import pytest
from deploy.test_package import VERSIONS
from services.db.servers import SERVERS
from services.ring import backends

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "doc" / "support.md").read_text()
HARNESS = ROOT / "tests" / "harness"
SHOWN = {
    "heat-cfntools",
    "heat-dashboard",
    "heat-tempest-plugin",
    "horizon",
    "openstack-heat",
    "openstack-placement",
    "os-collect-config",
    "python-heatclient",
}
"""Requirements that the page names, besides those of the cloud with a name of one word."""


def test_each_test_that_it_names_exists() -> None:
    paths = set(re.findall(r"`(tests/[\w/.]+)`", PAGE))
    assert len(paths) > 25
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def pinned() -> dict[str, str]:
    """Return the versions of what the tests install in environments of their own, by package."""
    files = ("cloud/installed", "horizon/installed", "heat/installed", "guests", "suites")
    texts = [(HARNESS / folder / "requirements.txt").read_text() for folder in files]
    return dict(re.findall(r"^([\w-]+)==(\S+)$", "\n".join(texts), re.MULTILINE))


def test_it_has_the_versions_of_the_services_and_agents_of_the_tests() -> None:
    versions = {name: version for name, version in pinned().items() if name in SHOWN or "-" not in name}
    assert len(versions) > 12
    rows = [line for line in PAGE.splitlines() if line.startswith("| ")]
    missing = [
        (name, version)
        for name, version in versions.items()
        if not any(
            name.removeprefix("openstack-") in row.lower()
            and re.search(rf"(?<![\d.]){re.escape(version)}\b", row)
            for row in rows
        )
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("heading", "names"),
    [
        ("Servers", {"sqlite": "SQLite", "postgresql": "PostgreSQL", "mariadb": "MariaDB"}),
        ("Pythons", {version: version for version in VERSIONS}),
    ],
)
def test_a_section_has_a_row_for_each_thing_that_is_tested(heading: str, names: dict[str, str]) -> None:
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    assert heading != "Servers" or names.keys() == set(SERVERS)
    first_cells = " ".join(re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE))
    assert [name for name in names.values() if name not in first_cells] == []


def test_each_backend_of_coordination_has_a_row() -> None:
    servers: set[typing.Any] = {backends.Etcd, backends.ZooKeeper, backends.Redis, backends.Memcached}
    section = PAGE.partition("| coordination |")[2].partition("\n## ")[0]
    assert [kind.name for kind in servers if f"| {kind.name.lower()} |" not in section.lower()] == []
