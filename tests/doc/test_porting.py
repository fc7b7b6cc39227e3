"""The plugin of doc/porting_plugins.md in a real Heat, and its port in a stack."""

import json
import pathlib
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
from client.serving import Service
from harness.third_party import with_plugins
from harness.waiting import wait_for

PAGE = pathlib.Path(__file__).parents[2] / "doc" / "porting_plugins.md"
HEAT = pathlib.Path(sys.prefix) / "heat" / "bin" / "python"
DESCRIBE = """
import json
from acme_heat import alias
[(name, plugin)] = alias.resource_mapping().items()
print(json.dumps([name, sorted(plugin.properties_schema), sorted(plugin.attributes_schema)]))
"""
FILE = re.compile(r"^```python\n(# (\S+)\n.*?)^```$", re.DOTALL | re.MULTILINE)
TEMPLATE = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def site(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with the packages of the page."""
    files = FILE.findall(PAGE.read_text())
    assert [name for _, name in files] == ["acme_heat/alias.py", "acme_stoker/alias.py"]
    folder = tmp_path / "site"
    for text, name in files:
        (folder / name).parent.mkdir(parents=True)
        (folder / name).write_text(text)
        (folder / name).with_name("__init__.py").touch()
    return folder


@pytest.mark.needs("heat")
def test_heat_loads_the_plugin_which_has_the_names_of_its_port(site: pathlib.Path) -> None:
    command = [HEAT, "-W", "ignore", "-c", DESCRIBE]
    outcome = subprocess.run(command, cwd=site, capture_output=True, text=True, timeout=300, check=False)
    assert outcome.returncode == 0, outcome.stderr
    port = """
import json
from acme_stoker import alias
[(name, plugin)] = alias.RESOURCE_TYPES.items()
print(json.dumps([name, sorted(plugin.properties_schema), sorted(plugin.attributes_schema)]))
"""
    command = [sys.executable, "-W", "ignore", "-c", port]
    ported = subprocess.run(command, cwd=site, capture_output=True, text=True, timeout=300, check=True)
    assert json.loads(outcome.stdout) == json.loads(ported.stdout)


@pytest.fixture
def service(tmp_path: pathlib.Path, site: pathlib.Path) -> Iterator[Service]:
    running = Service(tmp_path, conductors=1, env=with_plugins(site, "acme_stoker.alias"))
    yield running
    running.stop()


@pytest.mark.full
def test_the_port_creates_changes_and_deletes_an_alias(service: Service, tmp_path: pathlib.Path) -> None:
    zone = tmp_path / "example.org"
    (zone / "loaded").mkdir(parents=True)

    def load(target: str) -> str:
        """Do what the name servers do, once the alias leads to the target; return the revision."""
        wait_for(lambda: (zone / "www").exists() and target in (zone / "www").read_text(), 120)
        revision: str = json.loads((zone / "www").read_text())["revision"]
        (zone / "loaded" / "www").write_text(revision)
        return revision

    [template] = TEMPLATE.findall(PAGE.read_text())
    parameters = {"zone": str(zone), "target": "host1"}
    path = service.create("t", "s", template, parameters=parameters)
    revision = load("host1")
    assert service.settled(path)["stack_status"] == "CREATE_COMPLETE"
    outputs = {item["output_key"]: item["output_value"] for item in service.get(path)["stack"]["outputs"]}
    assert outputs == {"name": "www.example.org", "revision": revision}

    body = {"template": template, "parameters": {**parameters, "target": "host2"}}
    assert service.call("PUT", path, body).status == 202
    assert load("host2") != revision
    assert service.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    assert service.call("DELETE", path).status == 204
    wait_for(lambda: not (zone / "www").exists(), 120)


@pytest.mark.full
def test_the_port_refuses_an_alias_that_leads_nowhere(service: Service, tmp_path: pathlib.Path) -> None:
    [template] = TEMPLATE.findall(PAGE.read_text())
    body = {"stack_name": "s", "template": template, "parameters": {"zone": str(tmp_path), "target": ""}}
    answer = service.call("POST", "/v1/t/stacks", body)
    assert answer.status == 400
    assert "an alias needs a target" in answer.error["message"]
