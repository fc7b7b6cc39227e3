"""The agents of a real server, which Heat's images have, in a directory in the place of the server."""

import json
import os
import pathlib
import stat
import subprocess
from collections.abc import Mapping, Sequence

from harness.server import MissingServer

INSTALLED = pathlib.Path(__file__).parents[3] / ".venv" / "guests"
"""Made by ``make guests``, which ``make test`` runs."""
AGENTS = INSTALLED / "heat-agents"
REPORTS = """#!/bin/sh
exec python3 -c '
import json, sys
outputs = [output["name"] for output in json.load(sys.stdin).get("outputs") or ()]
said = dict(deploy_stdout="applied", deploy_stderr="", deploy_status_code=0)
print(json.dumps({**dict.fromkeys(outputs, "value"), **said}))
'
"""
"""The hook of a tool that is not run: it reports success, with a value for each output."""
PHASES = ("pre-configure.d", "configure.d", "post-configure.d", "migration.d")


class Agents:
    """os-collect-config with what it runs: os-refresh-config, os-apply-config, and the script hook.

    :param config: the entries of os-collect-config, as cloud-init writes them into a file.
    :param reporting: tools whose hooks only report that they were run.
    """

    def __init__(
        self,
        directory: pathlib.Path,
        config: Mapping[str, Mapping[str, object]],
        *,
        reporting: Sequence[str] = (),
    ) -> None:
        if not (AGENTS / "heat-config").exists():
            raise MissingServer("the agents of servers", "make guests")
        self._directory = directory
        self._root = directory / "root"
        self.conf = self._root / "etc" / "os-collect-config.conf"
        self.conf.parent.mkdir(parents=True)
        self.write(config)
        self._install()
        for group in reporting:
            _program(directory / "hooks" / group, REPORTS)

    def write(self, config: Mapping[str, Mapping[str, object]]) -> None:
        """Write the file that cloud-init would write."""
        lines = ["[DEFAULT]", *(f"collectors = {name}" for name in config["collectors"])]
        for section, entries in config.items():
            if section != "collectors":
                lines += [f"[{section}]", *(f"{name} = {value}" for name, value in entries.items())]
        self.conf.write_text("\n".join([*lines, ""]))

    def run(self) -> str:
        """Poll once, and apply what is new; return what the agents have said."""
        command = [
            self._python("os-collect-config"),
            *("--one-time", "--force", "--config-file", self.conf, "--cachedir", self._directory / "cache"),
            *("--backup-cachedir", self._directory / "old-cache"),
            *("--command", f"{self._python('os-refresh-config')} --lockfile {self._directory / 'lock'}"),
        ]
        done = subprocess.run(
            command, env=self._env(), capture_output=True, text=True, timeout=300, check=False
        )
        return done.stdout + done.stderr

    @property
    def applied(self) -> object:
        """The deployments that os-apply-config has written."""
        return json.loads((self._root / "var/run/heat-config/heat-config").read_text())

    def _python(self, program: str) -> pathlib.Path:
        return INSTALLED / "bin" / program

    def _env(self) -> dict[str, str]:
        at = self._directory
        return {
            "PATH": f"{INSTALLED / 'bin'}:{os.environ['PATH']}",
            "LC_ALL": "C",
            "PYTHONWARNINGS": "ignore",
            "OS_REFRESH_CONFIG_BASE_DIR": str(at / "phases"),
            "HEAT_CONFIG_HOOKS": str(at / "hooks"),
            "HEAT_SHELL_CONFIG": str(self._root / "var/run/heat-config/heat-config"),
            "HEAT_CONFIG_DEPLOYED": str(at / "deployed"),
            "HEAT_CONFIG_NOTIFY": str(at / "bin" / "heat-config-notify"),
            "HEAT_SCRIPT_WORKING": str(at / "working"),
            "HEAT_SCRIPT_OUTPUTS": str(at / "outputs"),
        }

    def _install(self) -> None:
        for phase in PHASES:
            (self._directory / "phases" / phase).mkdir(parents=True)
        source = AGENTS / "heat-config"
        configure = self._directory / "phases" / "configure.d"
        apply = f"#!/bin/sh\nexec os-apply-config -t {source / 'os-apply-config'} -o {self._root}\n"
        _program(configure / "20-os-apply-config", apply)
        self._copy(source / "os-refresh-config/configure.d/55-heat-config", configure / "55-heat-config")
        self._copy(source / "bin/heat-config-notify", self._directory / "bin" / "heat-config-notify")
        self._copy(
            AGENTS / "heat-config-script/install.d/hook-script.py", self._directory / "hooks" / "script"
        )

    def _copy(self, source: pathlib.Path, target: pathlib.Path) -> None:
        """Copy a program of Python's, to be run by the agents' own."""
        _, _, body = source.read_text().partition("\n")
        _program(target, f"#!{INSTALLED / 'bin' / 'python'}\n{body}")


def _program(path: pathlib.Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
