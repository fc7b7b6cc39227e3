"""heat-cfntools in a server: they read the metadata, apply it, and signal."""

import functools
import json
import os
import pathlib
import subprocess
import sys

import pytest
from client.serving import Json, Service
from harness.guests.agents import INSTALLED
from harness.waiting import wait_for

pytestmark = [pytest.mark.full, pytest.mark.needs("guests")]
TEMPLATE: Json = {
    "heat_template_version": "2018-08-31",
    "resources": {
        "server": {"type": "OS::Heat::DeployedServer"},
        "handle": {"type": "AWS::CloudFormation::WaitConditionHandle"},
        "wait": {
            "type": "AWS::CloudFormation::WaitCondition",
            "properties": {"Handle": {"get_resource": "handle"}, "Timeout": 3600},
        },
    },
    "outputs": {
        "url": {"value": {"get_resource": "handle"}},
        "data": {"value": {"get_attr": ["wait", "Data"]}},
    },
}


class CfnServer:
    """The files of a server, as cloud-init writes them; the tools find them in a namespace of mounts."""

    def __init__(self, directory: pathlib.Path, url: str) -> None:
        self._lib = directory / "lib"
        self._cache = directory / "cache"
        for folder in (self._lib, self._cache):
            folder.mkdir()
        host = url.partition("//")[2].partition(":")[0]
        (self._lib / "cfn-metadata-server").write_text(url)
        (self._lib / "cfn-boto-cfg").write_text(
            f"[Boto]\nis_secure = 0\ncfn_region_name = heat\ncfn_region_endpoint = {host}\n"
        )

    def run(self, *command: str) -> str:
        """Run one of the tools; return what it prints."""
        mounts = [
            f"mount --bind {folder} {place}"
            for folder, place in (
                (self._lib, "/var/lib/heat-cfntools"),
                (self._cache, "/var/cache/heat-cfntools"),
            )
        ]
        folders = "mkdir -p /var/lib/heat-cfntools /var/cache/heat-cfntools"
        script = " && ".join([folders, *mounts, "mount -t tmpfs tmpfs /var/log", 'exec "$@"'])
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", script, "sh", *command],
            env={"PATH": f"{INSTALLED / 'bin'}:{os.environ['PATH']}", "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


def is_made(service: Service, path: str) -> bool:
    """Return whether a resource is created."""
    return bool(service.get(path)["resource"]["resource_status"] == "CREATE_COMPLETE")


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="heat-cfntools need boto, which needs Python 3.11")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount the files of a server")
def test_the_tools_read_the_metadata_apply_it_and_signal(tmp_path: pathlib.Path) -> None:
    service = Service(tmp_path, conductors=1)
    try:
        target = tmp_path / "made"
        init = {"config": {"files": {str(target): {"content": "hello\n", "mode": "000600"}}}}
        body = json.loads(json.dumps(TEMPLATE))
        body["resources"]["server"]["metadata"] = {"AWS::CloudFormation::Init": init}
        path = service.create("guests", "cfn", body)
        for name in ("server", "handle"):
            wait_for(functools.partial(is_made, service, f"{path}/resources/{name}"))
        view = service.get(f"{path}/resources/server?with_attr=os_collect_config")["resource"]
        keys = view["attributes"]["os_collect_config"]["cfn"]
        url = next(
            o["output_value"] for o in service.get(path)["stack"]["outputs"] if o["output_key"] == "url"
        )
        server = CfnServer(tmp_path, service.url)
        named = ("-s", "cfn", "-r", "server")
        credentials = ("--access-key", keys["access_key_id"], "--secret-key", keys["secret_access_key"])
        assert (
            json.loads(server.run("cfn-get-metadata", *named, *credentials))["AWS::CloudFormation::Init"]
            == init
        )
        server.run("cfn-init", *named, *credentials, "--region", "heat")
        assert target.read_text() == "hello\n"
        server.run("cfn-signal", "-e", "0", "--id", "one", "-d", "data", url)
        stack = service.settled(path)
        assert stack["stack_status"] == "CREATE_COMPLETE"
        outputs = {output["output_key"]: output["output_value"] for output in stack["outputs"]}
        assert json.loads(outputs["data"]) == {"one": "data"}
    finally:
        service.stop()
