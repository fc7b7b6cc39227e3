"""Horizon with Heat's dashboard, from a virtual environment of its own (tools/install-horizon)."""

import pathlib
import re
import sys
from collections.abc import Sequence

import requests
from harness.ports import HOST
from harness.server import Server

HOME = pathlib.Path(sys.prefix) / "horizon"
INSTALLED = pathlib.Path(__file__).parent / "installed"
"""The requirements, the settings, and the program that serves it."""
SETTINGS = """\
{installed}
OPENSTACK_KEYSTONE_URL = "{auth_url}"
ALLOWED_HOSTS = ["{host}"]
"""
TROUBLE = re.compile(
    r"^\S+ \S+ (?:(?:ERROR|CRITICAL) .*|WARNING horizon\.exceptions .*)|^Traceback .*", re.MULTILINE
)
"""Lines of its log that say that something went wrong."""


class Horizon(Server):
    """Horizon on a private port, with the panels that users of a cloud have, and those of Heat's dashboard.

    :param auth_url: Keystone's v3 root, in whose service catalog Horizon finds the services.
    """

    name = "Horizon"
    start_within = 300.0

    def __init__(self, auth_url: str) -> None:
        super().__init__()
        self._auth_url = auth_url
        self._read = 0

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://{HOST}:{self.port}"

    def troubles(self) -> list[str]:
        """Return the lines of its log since the last call that report errors."""
        text = self.process.text()
        troubles = TROUBLE.findall(text[self._read :])
        self._read = len(text)
        return troubles

    def recovered(self) -> None:
        """Forget what has gone wrong; every line of it must be about an error that Horizon shows its user."""
        for line in self.troubles():
            assert " Recoverable error: " in line, line

    def _prepare(self) -> None:
        if not (HOME / "static").exists():
            raise FileNotFoundError(f"{HOME} is missing: run `make horizon`")
        installed = (INSTALLED / "local" / "local_settings.py").read_text()
        local = self.directory / "local"  # What Horizon imports as `local`, where its package has none.
        local.mkdir()
        (local / "__init__.py").touch()
        text = SETTINGS.format(installed=installed, auth_url=self._auth_url, host=HOST)
        (local / "local_settings.py").write_text(text)

    def _command(self) -> Sequence[str]:
        return [
            str(HOME / "bin" / "python"),
            "-P",
            "-W",
            "ignore",
            str(INSTALLED / "serve.py"),
            str(self.port),
        ]

    def _environment(self) -> dict[str, str]:
        # What it imports is compiled with the first start.
        return {"PYTHONPATH": str(self.directory), "PYTHONDONTWRITEBYTECODE": ""}

    def _answers(self) -> bool:
        try:
            return requests.get(f"{self.url}/auth/login/", timeout=60).status_code == 200
        except (requests.ConnectionError, requests.Timeout):
            return False
