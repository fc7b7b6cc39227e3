"""A real OpenStack and a Stoker that works on it: one cloud for the whole run, a project for each test."""

import contextlib
import pathlib
from collections.abc import Iterator

import pytest
from client.serving import Service
from harness.cloud.access import Cloud
from harness.cloud.maker import Maker
from harness.cloud.pool import ADMIN, ProjectPool
from harness.cloud.project import Project
from harness.cloud.server import joined
from harness.cloud.stacks import Stacks
from harness.cloud.stoker import stoker_on
from harness.once import run_of
from harness.telemetry import Telemetry

LONG = (
    "test_bad_input",
    "test_chaos",
    "test_cinder_updates",
    "test_cloudformation_types",
    "test_drift",
    "test_elastic_load_balancer",
    "test_kept_things",
    "test_late_answers",
    "test_neutron_small",
    "test_neutron_updates",
    "test_nova_server",
    "test_nova_server_actions",
    "test_nova_server_updates",
    "test_nova_soft_delete",
    "test_octavia",
    "test_octavia_stacks",
    "test_public_shapes",
    "test_server_stacks",
    "test_vpc",
)
"""Modules that take the processor longest: only `make test-cloud` runs them."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = pathlib.Path(__file__).parent
    for item in items:
        if item.path.parent == here and item.path.stem in LONG:
            item.add_marker(pytest.mark.long)


@pytest.fixture(scope="session")
def cloud(tmp_path_factory: pytest.TempPathFactory) -> Cloud:
    return joined(*run_of(tmp_path_factory.getbasetemp()))


@pytest.fixture(scope="session")
def stoker(cloud: Cloud, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A Stoker all in one, with Keystone's authentication and trusts."""
    with stoker_on(cloud, tmp_path_factory.mktemp("stoker")) as service:
        yield service


@pytest.fixture(scope="session")
def projects(cloud: Cloud) -> Iterator[ProjectPool]:
    """Clean projects for the tests of this process, one after the other."""
    with contextlib.closing(ProjectPool(cloud)) as pool:
        yield pool


@pytest.fixture
def project(projects: ProjectPool) -> Iterator[Project]:
    """A project of a user with the role "member", with nothing in it."""
    with projects.lent() as lent:
        yield lent


@pytest.fixture
def other(projects: ProjectPool) -> Iterator[Project]:
    """A project of another user."""
    with projects.lent() as lent:
        yield lent


@pytest.fixture
def operator(projects: ProjectPool) -> Iterator[Project]:
    """A project of a user who is an admin, too: for flavors, types of volumes, provider networks."""
    with projects.lent(ADMIN) as lent:
        yield lent


@pytest.fixture
def make(project: Project) -> Maker:
    """Creates resources of the project by the steps of their types."""
    return Maker(project)


@pytest.fixture
def make_as_operator(operator: Project) -> Maker:
    """Creates resources of the operator's project."""
    return Maker(operator)


@pytest.fixture
def stacks(stoker: Service, project: Project) -> Iterator[Stacks]:
    """The stacks of the project; those that a test leaves are deleted."""
    stacks_of_project = Stacks(stoker, project)
    yield stacks_of_project
    stacks_of_project.clean()


@pytest.fixture
def operator_stacks(stoker: Service, operator: Project) -> Iterator[Stacks]:
    """The stacks of the operator's project."""
    stacks_of_project = Stacks(stoker, operator)
    yield stacks_of_project
    stacks_of_project.clean()


@pytest.fixture
def balancers(cloud: Cloud, project: Project, operator: Project) -> None:
    """Octavia runs, and the projects' tokens know it."""
    _start(cloud, "octavia", project, operator)


@pytest.fixture
def objects(cloud: Cloud, project: Project) -> None:
    """Swift runs, and the project's tokens know it."""
    _start(cloud, "swift", project)


@pytest.fixture
def secrets(cloud: Cloud, project: Project) -> None:
    """Barbican runs, and the project's tokens know it."""
    _start(cloud, "barbican", project)


@pytest.fixture
def alarms(cloud: Cloud, project: Project) -> None:
    """Aodh runs, with Gnocchi, and the project's tokens know it."""
    _start(cloud, "aodh", project)


@pytest.fixture
def telemetry(alarms: None, cloud: Cloud, project: Project) -> Telemetry:
    """Writes measures of the project's servers to Gnocchi."""
    return Telemetry(cloud, project)


@pytest.fixture
def names(cloud: Cloud, project: Project) -> None:
    """Designate runs, and the project's tokens know it."""
    _start(cloud, "designate", project)


@pytest.fixture
def shares(cloud: Cloud, project: Project, operator: Project) -> None:
    """Manila runs, and the projects' tokens know it."""
    _start(cloud, "manila", project, operator)


@pytest.fixture
def workflows(cloud: Cloud, project: Project) -> None:
    """Mistral runs, and the project's tokens know it."""
    _start(cloud, "mistral", project)


def _start(cloud: Cloud, name: str, *projects: Project) -> None:
    cloud.start(name)
    for lent in projects:
        lent.connection.session.invalidate()
