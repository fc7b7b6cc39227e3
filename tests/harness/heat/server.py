"""The real Heat on a cloud of the tests: its API, its CloudFormation API and one engine."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import typing
import urllib.parse

import amqp
import requests
import sqlalchemy as sa
from harness.cloud.access import Cloud
from harness.cloud.layout import INSTALLED, PASSWORD, REGION, Ini, rendered
from harness.guard import GUARD
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.server import MissingServer
from harness.waiting import wait_for

HOME = pathlib.Path(sys.prefix) / "heat"
"""The virtual environment of Heat (``make heat``)."""
BIN = HOME / "bin"
KEY = "a key of thirty-two characters.."
"""Its option auth_encryption_key."""
DOMAIN = "heat"
ADMIN = "heat_domain_admin"
START_WITHIN = 180.0
QUEUE = "engine"
"""The queue that the engine reads."""
PROGRAMS = {"heat-api": "heat.wsgi.api", "heat-cfn": "heat.wsgi.cfn"}


class RealHeat:
    """A Heat for the users of a cloud.  For one thread.

    :ivar api: root of the API, with its version.
    :ivar cfn: root of the CloudFormation API, without a version.
    :ivar database: SQLAlchemy URL of its database.
    :ivar config: its configuration file, which has its key.
    """

    def __init__(self, cloud: Cloud) -> None:
        if not (BIN / "heat-engine").exists():
            raise MissingServer(f"Heat in {HOME}", "none: it comes from PyPI, by `make heat`")
        self._cloud = cloud
        self._directory = pathlib.Path(tempfile.mkdtemp(prefix="stoker-heat-"))
        self.config = self._directory / "heat.conf"
        GUARD.directory(self._directory)
        self._ports = {name: free_port() for name in PROGRAMS}
        self.api = f"http://{HOST}:{self._ports['heat-api']}/v1"
        self.cfn = f"http://{HOST}:{self._ports['heat-cfn']}"
        self._server = cloud.database_url
        self.database = f"{self._server}heat?charset=utf8mb4"
        self._processes: list[Process] = []

    def __enter__(self) -> typing.Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Make its database and its accounts, and start its programs."""
        engine = sa.create_engine(self._server)
        with engine.connect() as conn:
            conn.execute(sa.text("DROP DATABASE IF EXISTS heat"))  # Of an earlier run on the same cloud.
            conn.execute(sa.text("CREATE DATABASE heat"))
        engine.dispose()
        self._enter_into_keystone()
        self.config.write_text(rendered(self._configuration()))
        shutil.copy(HOME / "etc/heat/api-paste.ini", self._directory)
        for name in ("environment.d", "templates"):
            shutil.copytree(HOME / "etc/heat" / name, self._directory / name)
        arguments = ["--config-file", str(self.config)]
        command = [BIN / "heat-manage", *arguments, "db_sync"]
        subprocess.run(command, env=_environment(), cwd=self._directory, check=True, capture_output=True)
        self.resume()

    def resume(self) -> None:
        """Start its programs, at first or once more, on the database that it has."""
        arguments = ["--config-file", str(self.config)]
        python = [str(BIN / "python"), "-P", "-W", "ignore", str(INSTALLED / "serve.py")]
        for name, module in PROGRAMS.items():
            requests_file = str(self._directory / f"{name}.requests")
            self._launch([*python, name, module, str(self._ports[name]), requests_file, *arguments], name)
        self._launch([str(BIN / "heat-engine"), *arguments], "heat-engine")
        for root in (self.api, self.cfn):
            wait_for(lambda root=root: _answers(root), START_WITHIN, self.story)  # type: ignore[misc]
        # What is sent to the engine before it reads is lost.
        wait_for(self._engine_reads, START_WITHIN, self.story)

    def stop(self) -> None:
        """End its programs; its database stays."""
        for process in self._processes:
            process.kill()
        self._processes = []

    def close(self) -> None:
        """End it, and remove what it has written but its database."""
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)
        GUARD.directory_removed(self._directory)

    def _engine_reads(self) -> bool:
        broker = urllib.parse.urlsplit(self._cloud.broker_url)
        host = f"{broker.hostname}:{broker.port}"
        with amqp.Connection(host, connect_timeout=60, read_timeout=60) as connection:
            try:
                queue = connection.channel().queue_declare(QUEUE, passive=True)
            except amqp.NotFound:
                return False
            return bool(queue.consumer_count)

    def _launch(self, command: list[str], name: str) -> None:
        log = self._directory / f"{name}.out"
        self._processes.append(Process(command, log=log, env=_environment(), directory=self._directory))

    def story(self) -> str:
        """The ends of its logs."""
        logs = sorted(self._directory.glob("*.out")) + sorted(self._directory.glob("*.log"))
        return "\n".join(f"{log.name}: {log.read_text(errors='replace')[-2000:]}" for log in logs)

    def _enter_into_keystone(self) -> None:
        identity = self._cloud.admin.identity
        domain = identity.find_domain(DOMAIN) or identity.create_domain(name=DOMAIN)
        user = identity.find_user(ADMIN, domain_id=domain.id) or identity.create_user(
            name=ADMIN, domain_id=domain.id, password=PASSWORD
        )
        identity.assign_domain_role_to_user(domain, user, identity.find_role("admin"))
        for kind, url in (
            ("orchestration", f"{self.api}/$(project_id)s"),
            ("cloudformation", f"{self.cfn}/v1"),
        ):
            for earlier in [service for service in identity.services() if service.type == kind]:
                identity.delete_service(earlier)
            service = identity.create_service(name="heat", type=kind)
            for interface in ("public", "internal", "admin"):
                identity.create_endpoint(
                    service_id=service.id, interface=interface, region_id=REGION, url=url
                )

    def _configuration(self) -> Ini:
        auth_url = self._cloud.auth_url
        # Stoker's own account is the trustee, so that the trusts are taken over.
        account = {
            "auth_type": "password",
            "auth_url": auth_url,
            "username": "stoker",
            "password": PASSWORD,
            "user_domain_id": "default",
        }
        service = {**account, "project_name": "service", "project_domain_id": "default"}
        return {
            "DEFAULT": {
                "transport_url": self._cloud.broker_url,
                "log_file": self._directory / "heat.log",
                "use_stderr": False,
                "num_engine_workers": 1,
                # An engine that starts on a busy machine answers late.
                "rpc_response_timeout": 600,
                "deferred_auth_method": "trusts",
                "trusts_delegated_roles": "",
                "stack_user_domain_name": DOMAIN,
                "stack_domain_admin": ADMIN,
                "stack_domain_admin_password": PASSWORD,
                "heat_metadata_server_url": self.cfn,
                "heat_waitcondition_server_url": f"{self.cfn}/v1/waitcondition",
                "region_name_for_services": REGION,
                "auth_encryption_key": KEY,
                "enable_stack_abandon": True,
                "encrypt_parameters_and_properties": True,
            },
            "clients_keystone": {"auth_uri": auth_url},
            "database": {"connection": self.database},
            "ec2authtoken": service,
            "keystone_authtoken": {**service, "www_authenticate_uri": auth_url},
            "trustee": account,
            "oslo_messaging_rabbit": {"heartbeat_in_pthread": False},
        }


def _environment() -> dict[str, str]:
    # What it imports is compiled with the first start.
    return {**os.environ, "PYTHONWARNINGS": "ignore", "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": ""}


def _answers(root: str) -> bool:
    try:
        return requests.get(root, timeout=30).status_code < 500
    except (requests.ConnectionError, requests.Timeout):
        return False
