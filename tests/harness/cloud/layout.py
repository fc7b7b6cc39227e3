"""Where the parts of a cloud lie, listen and find each other."""

import dataclasses
import pathlib
import sys
import typing
from collections.abc import Mapping

from harness.ports import HOST

HOME = pathlib.Path(sys.prefix) / "cloud"
"""The virtual environment of all services (``make test-deps``)."""
BIN = HOME / "bin"
INSTALLED = pathlib.Path(__file__).parent / "installed"
"""The requirements, and the programs and drivers that run in that environment."""
PASSWORD = "s3cret"
"""The password of all accounts."""
REGION = "RegionOne"
COMPUTE_HOST = "cloud"


@dataclasses.dataclass(frozen=True)
class Layout:
    """The places of one cloud.

    :ivar directory: everything that the services write is below; database and broker have their own.
    :ivar ports: name of a service -> the port of its API.
    :ivar database: SQLAlchemy URL of the database server, without a database.
    :ivar broker: oslo.messaging URL of the vhost.
    """

    directory: pathlib.Path
    ports: Mapping[str, int]
    database: str
    broker: str

    @property
    def auth_url(self) -> str:
        """Keystone's v3 root."""
        return f"{self.url('keystone')}/v3"

    def url(self, service: str) -> str:
        """The root of a service's API."""
        return f"http://{HOST}:{self.ports[service]}"

    def database_of(self, name: str) -> str:
        return f"{self.database}{name}?charset=utf8mb4"

    def config(self, service: str) -> pathlib.Path:
        """The folder of a service's configuration."""
        return self.directory / "etc" / service

    def state(self, service: str) -> pathlib.Path:
        """The folder of what a service writes; what is made once is kept with it."""
        return self.directory / "state" / service

    def log(self, program: str) -> pathlib.Path:
        return self.directory / "logs" / f"{program}.log"

    def requests(self, service: str) -> pathlib.Path:
        """The file with a line for each request that a service has answered."""
        return requests_of(self.directory, service)

    def environment(self) -> dict[str, str]:
        """The variables of all programs of the cloud."""
        variables: dict[str, str] = {
            "PYTHONPATH": str(INSTALLED / "plugins"),
            "PYTHONWARNINGS": "ignore",
            "PYTHONDONTWRITEBYTECODE": "",  # What they import is compiled with the first start.
            "OS_KEYSTONE_CONFIG_DIR": str(self.config("keystone")),
            "OS_KEYSTONE_CONFIG_FILES": str(self.config("keystone") / "keystone.conf"),
            "OS_NEUTRON_CONFIG_FILES": "neutron.conf",
        }
        for name in ("glance", "placement", "neutron", "nova"):
            variables[f"OS_{name.upper()}_CONFIG_DIR"] = str(self.config(name))
        return variables


def serving(service: str, module: str, port: int, requests: pathlib.Path, *arguments: str) -> list[str]:
    """The command that serves a WSGI application; see installed/serve.py."""
    program = [str(BIN / "python"), "-P", "-W", "ignore", str(INSTALLED / "serve.py")]
    return [*program, service, module, str(port), str(requests), *arguments]


def requests_of(directory: pathlib.Path, service: str) -> pathlib.Path:
    """The file with a service's requests, in the directory of a cloud."""
    return directory / "logs" / f"{service}.requests"


Section = Mapping[str, typing.Any]
Ini = Mapping[str, Section]
"""A configuration file: section -> option -> value."""


def rendered(ini: Ini) -> str:
    """The text of a configuration file; True and False as oslo.config writes them."""
    lines: list[str] = []
    for section, options in ini.items():
        lines.append(f"[{section}]")
        lines += [
            f"{name} = {str(value).lower() if isinstance(value, bool) else value}"
            for name, value in options.items()
        ]
    return "\n".join(lines) + "\n"
