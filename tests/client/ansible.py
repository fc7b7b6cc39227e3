"""Ansible with the collection openstack.cloud, from an environment of its own (tools/install-ansible)."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing

import pytest
from client.serving import Service

HOME = pathlib.Path(sys.prefix) / "ansible"
Json = typing.Any


@dataclasses.dataclass(frozen=True)
class Ansible:
    """``ansible-playbook`` for one project."""

    service: Service
    tenant: str
    directory: pathlib.Path

    def stack(self, **options: Json) -> Json:
        """Run one task of the module openstack.cloud.stack, which must succeed; what it returns."""
        if not (HOME / "bin" / "ansible-playbook").exists():
            pytest.fail(f"{HOME} is missing: run `make .venv/ansible.stamp`", pytrace=False)
        module = {"auth_type": "none", "auth": {"endpoint": self._endpoint}, **options}
        result = self.directory / "result.json"
        copy = {"content": "{{ done | to_json }}", "dest": str(result)}
        tasks = [{"openstack.cloud.stack": module, "register": "done"}, {"ansible.builtin.copy": copy}]
        play = [{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": tasks}]
        path = self.directory / "play.json"  # JSON is YAML.
        path.write_text(json.dumps(play))
        done = subprocess.run(
            [HOME / "bin" / "ansible-playbook", "-i", "localhost,", path],
            capture_output=True,
            text=True,
            env={**os.environ, **self._environment()},
            timeout=240,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(result.read_text())

    @property
    def _endpoint(self) -> str:
        return f"{self.service.url}/v1/{self.tenant}"

    def _environment(self) -> dict[str, str]:
        return {
            "ANSIBLE_COLLECTIONS_PATH": str(HOME / "collections"),
            "ANSIBLE_HOME": str(self.directory),
            "ANSIBLE_PYTHON_INTERPRETER": str(HOME / "bin" / "python"),
            "LC_ALL": "C.UTF-8",
            "PYTHONWARNINGS": "ignore",
        }
