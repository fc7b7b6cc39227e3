"""A real OpenStack and a Stoker that works on it: one cloud for the whole run, a project for each test."""

import os
import pathlib
from collections.abc import Iterator

import pytest
from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.project import Project
from harness.cloud.server import joined
from harness.cloud.stacks import Stacks

IN_EACH_RUN = ("test_cloud", "test_examples", "test_networks", "test_request_checks")
"""Modules that `make test` runs; `make test-cloud` runs all, which takes half an hour and more."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = pathlib.Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.path.stem not in IN_EACH_RUN:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    folder, run = tmp_path_factory.getbasetemp(), os.getpid()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder, run = folder.parent, os.getppid()
    return joined(folder, run)


@pytest.fixture(scope="session")
def stoker(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A Stoker all in one, with Keystone's authentication and trusts."""
    folder = tmp_path_factory.mktemp("stoker")
    config = folder / "cloud.conf"
    config.write_text(cloud.stoker_options())
    service = Service(folder, config=config)
    try:
        yield service
    finally:
        service.stop()


@pytest.fixture
def project(cloud: Cloud) -> Iterator[Project]:
    """A project of a user with the role "member", with nothing in it."""
    with cloud.project() as made:
        yield made


@pytest.fixture
def operator(cloud: Cloud) -> Iterator[Project]:
    """A project of a user who is an admin, too: for flavors, types of volumes, provider networks."""
    with cloud.project(("member", "admin")) as made:
        yield made


@pytest.fixture
def stacks(stoker: Service, project: Project) -> Iterator[Stacks]:
    """The stacks of the project; those that a test leaves are deleted."""
    made = Stacks(stoker, project)
    yield made
    made.clean()


@pytest.fixture
def operator_stacks(stoker: Service, operator: Project) -> Iterator[Stacks]:
    """The stacks of the operator's project."""
    made = Stacks(stoker, operator)
    yield made
    made.clean()
