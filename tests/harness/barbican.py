"""Barbican alone, from the virtual environment of the cloud."""

import requests
from harness.cloud.layout import BIN, HOME, PASSWORD, serving
from harness.keystone import Keystone
from harness.ports import HOST
from harness.server import MissingServer, Server

CONFIG = """\
[DEFAULT]
host_href = http://{host}:{port}
db_auto_create = true
sql_connection = sqlite:///{directory}/barbican.sqlite
[database]
connection = sqlite:///{directory}/barbican.sqlite
[secretstore]
enabled_secretstore_plugins = store_crypto
[crypto]
enabled_crypto_plugins = simple_crypto
[simple_crypto_plugin]
kek = YWJjZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXoxMjM0NTY=
[queue]
enable = false
[keystone_authtoken]
auth_type = password
auth_url = {auth_url}
username = admin
password = {password}
project_name = admin
user_domain_id = default
project_domain_id = default
"""


APPLICATION = """\
from paste import deploy
application = deploy.loadapp("config:{paste}")
"""
"""In place of barbican.wsgi.api, which reads a file below /etc."""


class Barbican(Server):
    """Barbican on SQLite, which knows the users of a Keystone.

    :param keystone: runs already.
    """

    name = "Barbican"

    def __init__(self, keystone: Keystone) -> None:
        super().__init__()
        self._keystone = keystone

    @property
    def url(self) -> str:
        """Its root."""
        return f"http://{HOST}:{self.port}"

    def store(self, token: str, payload: str) -> str:
        """Store a secret of the token's project; its address."""
        body = {"name": "credential", "payload": payload, "payload_content_type": "text/plain"}
        answer = requests.post(
            f"{self.url}/v1/secrets", json=body, headers={"X-Auth-Token": token}, timeout=120
        )
        assert answer.status_code == 201, answer.text
        return str(answer.json()["secret_ref"])

    def _prepare(self) -> None:
        if not (BIN / "barbican-manage").exists():
            raise MissingServer(f"Barbican in {HOME}", "none: it comes from PyPI")
        folder = self.directory / ".barbican"
        folder.mkdir()
        values = {"auth_url": self._keystone.url, "password": PASSWORD, "host": HOST, "port": self.port}
        (folder / "barbican.conf").write_text(CONFIG.format(directory=self.directory, **values))
        paste = HOME / "etc" / "barbican" / "barbican-api-paste.ini"
        (self.directory / "barbican_application.py").write_text(APPLICATION.format(paste=paste))

    def _command(self) -> list[str]:
        return serving("barbican", "barbican_application", self.port, self.directory / "requests")

    def _environment(self) -> dict[str, str]:
        folder = str(self.directory)
        return {"HOME": folder, "PYTHONPATH": folder, "ONE_AT_A_TIME": "1"}

    def _answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=5).status_code in (200, 300)
        except requests.RequestException:
            return False
