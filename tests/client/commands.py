"""The commands of python-openstackclient and python-heatclient, run in this process or in another."""

import contextlib
import dataclasses
import io
import json
import os
import pathlib
import subprocess
import sys
import typing

from client.serving import Service
from openstackclient import shell
from osc_lib import clientmanager

Json = typing.Any


@dataclasses.dataclass(frozen=True)
class Done:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Json:
        """The output, with ``-f json``."""
        return json.loads(self.out)


class OpenStack:
    """The client of one project, without Keystone."""

    def __init__(self, service: Service, tenant: str, directory: pathlib.Path) -> None:
        self.service = service
        self.tenant = tenant
        self.variables = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": f"{service.url}/v1/{tenant}"}
        self._directory = directory

    def file(self, name: str, text: str) -> str:
        """A file with this text; its path."""
        path = self._directory / name
        path.write_text(text)
        return str(path)

    def call(self, *arguments: str) -> Done:
        """Run a command by the entry point of ``openstack``, here: starting a process takes 1.5 s."""
        out = io.StringIO()
        err = io.StringIO()
        _forget_connection()
        # Not by the environment, which is read once for the whole process.
        access = ["--os-auth-type", "none", "--os-endpoint", self.variables["OS_ENDPOINT"]]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                code = shell.main([*access, *arguments])
            except SystemExit as ended:
                code = int(ended.code or 0)
        return Done(code, out.getvalue(), err.getvalue())

    def run(self, *arguments: str) -> Done:
        """Run a command that must succeed, without a complaint."""
        done = self.call(*arguments)
        assert (done.code, done.err) == (0, ""), done
        return done

    def json(self, *arguments: str) -> Json:
        """Return the output of a command that must succeed with ``-f json``."""
        return self.run(*arguments, "-f", "json").json

    def fails(self, *arguments: str) -> str:
        """Return the output of a command that must end with 1."""
        done = self.call(*arguments)
        assert done.code == 1, done
        return done.out + done.err

    def process(self, *arguments: str) -> Done:
        """Run a command in a process of its own, as a user does."""
        done = subprocess.run(
            [str(pathlib.Path(sys.executable).parent / "openstack"), *arguments],
            capture_output=True,
            text=True,
            env={**os.environ, **self.variables, "PYTHONWARNINGS": "ignore"},
            timeout=240,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)


def _forget_connection() -> None:
    """The client keeps the connection of its first command for the whole process."""
    cached = vars(clientmanager.ClientManager).get("orchestration")
    if cached is not None:
        cached._handle = None
