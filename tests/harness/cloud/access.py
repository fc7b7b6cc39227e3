"""A cloud as those see it who use it: connections, and projects of their own."""

import contextlib
import functools
import json
import pathlib
import typing
import uuid
from collections.abc import Collection, Iterator, Mapping

from harness.cloud.contents import connect
from harness.cloud.layout import PASSWORD, REGION, requests_of
from harness.cloud.project import Project
from harness.cloud.rows import Rows
from harness.once import locked
from harness.processes import ProcessEnded
from harness.waiting import wait_for
from openstack.connection import Connection

READY = "cloud.json"
"""The file of a cloud's directory that says where it is, once it serves."""
ANSWERED = ".answered"
"""The suffix of the file that answers a request for a service: empty, or the reason of a failure."""
START_WITHIN = 600.0
CLOUDS = "clouds.yaml"
"""The file of the same directory for the OpenStack client; its clouds are "admin" and "demo"."""


def request_of(directory: pathlib.Path, service: str) -> pathlib.Path:
    """The file by which a cloud is asked to start a service."""
    return directory / "requested" / service


class Cloud:
    """A cloud that runs.  Any thread may call it; a connection is for one thread at a time.

    :param directory: the cloud's.
    :ivar auth_url: Keystone's v3 root.
    :ivar urls: name of a service -> the root of its API.
    :ivar database_url: SQLAlchemy URL of the database server, without a database.
    :ivar broker_url: oslo.messaging URL of the broker.
    """

    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        facts = json.loads((directory / READY).read_text())
        self.auth_url: str = facts["auth_url"]
        self.urls: Mapping[str, str] = facts["urls"]
        self.database_url: str = facts["database"]
        self.broker_url: str = facts["broker"]
        self._rows = Rows(self.database_url)

    @functools.cached_property
    def admin(self) -> Connection:
        """The operator's connection."""
        return self.connect("admin", "admin")

    def connect(self, user: str, project: str) -> Connection:
        """A connection of a user's to a project."""
        return connect(self.auth_url, user, project)

    def make_project(self, roles: Collection[str] = ("member",)) -> Project:
        """Make a project with one user, who has these roles."""
        identity = self.admin.identity
        name = f"project-{uuid.uuid4().hex[:8]}"
        project = identity.create_project(name=name, domain_id="default")
        user = identity.create_user(name=name, domain_id="default", password=PASSWORD)
        for role in roles:
            identity.assign_project_role_to_user(project, user, identity.find_role(role))
        return self.existing(name)

    def remove_project(self, project: Project) -> None:
        """Delete a clean project and its user."""
        for group in self.admin.network.security_groups(project_id=project.id):
            self.admin.network.delete_security_group(group)
        self.admin.identity.delete_user(project.user_id)
        self.admin.identity.delete_project(project.id)

    @contextlib.contextmanager
    def project(self, roles: Collection[str] = ("member",)) -> Iterator[Project]:
        """A project with one user, who has these roles; all of it is gone afterwards."""
        project = self.make_project(roles)
        try:
            yield project
        finally:
            try:
                project.clean()
            finally:
                self.remove_project(project)

    def start(self, name: str) -> None:
        """Start one of `services.OPTIONAL`, unless it runs; tokens of before do not have it in their catalog.

        :raises ProcessEnded: it could not be started.
        """
        request = request_of(self.directory, name)
        request.parent.mkdir(exist_ok=True)
        request.touch()
        answer = request.with_suffix(ANSWERED)
        wait_for(answer.exists, START_WITHIN, lambda: f"{name} is not started", pause=0.1)
        if text := answer.read_text():
            raise ProcessEnded(text)

    @contextlib.contextmanager
    def registered(self, service_type: str, url: str, region: str = REGION) -> Iterator[None]:
        """A service in the catalog of all users; no other test registers one of this type meanwhile.

        Clients take the first service of a type, also where it has no endpoint in their region.
        """
        identity = self.admin.identity
        with locked(self.directory / f"{service_type}.lock"):
            service = identity.create_service(name=f"{service_type} of a test", type=service_type)
            try:
                for interface in ("public", "internal"):
                    identity.create_endpoint(
                        service_id=service.id, interface=interface, region_id=region, url=url
                    )
                yield
            finally:
                identity.delete_service(service)

    def requests(self, service: str, project: Project) -> list[str]:
        """Requests of a project that a service has answered, in order: method, path with query, status."""
        lines = requests_of(self.directory, service).read_text().splitlines()
        return [line.rpartition(" ")[0] for line in lines if line.endswith(f" {project.id}")]

    def existing(self, name: str) -> Project:
        """A project whose user has the same name."""
        connection = self.connect(name, name)
        who = connection.session.auth.get_access(connection.session)
        return Project(who.project_id, name, who.user_id, connection, self.admin, self._rows)

    def stoker_options(self) -> str:
        """The configuration of a Stoker that works for the users of this cloud."""
        account: dict[str, typing.Any] = {
            "auth_type": "password",
            "auth_url": self.auth_url,
            "www_authenticate_uri": self.auth_url,
            "username": "stoker",
            "password": PASSWORD,
            "project_name": "service",
            "user_domain_id": "default",
            "project_domain_id": "default",
        }
        lines = [f"{name} = {value}" for name, value in account.items()]
        authentication = ["[api]", "auth_strategy = keystone", "[keystone_authtoken]", *lines]
        return "\n".join([*authentication, "[clients]", f"region_name = {REGION}", ""])
