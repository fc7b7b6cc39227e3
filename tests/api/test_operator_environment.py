"""Environments and templates of an operator, below those of all stacks."""

import contextlib
import json
import pathlib
from collections.abc import Iterator

import pytest
from client.serving import Json, Service, fault
from harness.installation import write_config
from harness.programs import BIN, run
from harness.templates import one, template

FIRST = """\
resource_registry:
  "OS::Quantum*": "OS::Heat*"
  "Acme::Pair": pair.yaml
  "OS::Heat::RandomString": "{folder}/wrapped.template"
  "Acme::Later": "OS::Heat::None"
  "OS::Sahara::*": null
  "OS::Heat::Delay": null
parameter_defaults:
  size: 3
  colour: red
"""
SECOND = """\
resource_registry:
  "Acme::Later": "OS::Heat::TestResource"
parameter_defaults: {colour: blue}
"""
PAIR = """\
heat_template_version: 2021-04-16
description: Two of a kind.
parameters:
  value: {type: string, description: of both}
  secret: {type: string, hidden: true, default: s3cret}
resources:
  left: {type: leaf.yaml, properties: {value: {get_param: value}}}
  right: {type: OS::Heat::TestResource, properties: {value: {get_param: value}}}
outputs:
  both: {value: {get_attr: [left, value]}, description: of the left one}
"""
LEAF = """\
heat_template_version: 2021-04-16
parameters: {value: {type: string}}
resources:
  only: {type: OS::Heat::TestResource, properties: {value: {get_param: value}}}
outputs:
  value: {value: {get_attr: [only, output]}}
"""
WRAPPED = """\
heat_template_version: 2021-04-16
parameters: {length: {type: number, default: 32}}
resources:
  inner: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
outputs:
  value: {value: {get_attr: [inner, value]}}
"""


def installation(folder: pathlib.Path) -> pathlib.Path:
    """A configuration file, with the operator's files beside it."""
    for name in ("environment.d", "templates"):
        (folder / name).mkdir()
    (folder / "environment.d/10-first.yaml").write_text(FIRST.replace("{folder}", folder.as_uri()))
    (folder / "environment.d/20-second.yaml").write_text(SECOND)
    (folder / "templates/pair.yaml").write_text(PAIR)
    (folder / "templates/leaf.yaml").write_text(LEAF)
    (folder / "wrapped.template").write_text(WRAPPED)
    config = folder / "operator.conf"
    config.write_text(options(folder))
    return config


def options(folder: pathlib.Path) -> str:
    return f"[stacks]\nenvironment_dir = {folder}/environment.d\ntemplate_dir = {folder}/templates\n"


@pytest.fixture(scope="module")
def operated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    directory: pathlib.Path = tmp_path_factory.mktemp("operated")
    running = Service(directory, conductors=1, config=installation(directory))
    try:
        yield running
    finally:
        running.stop()


def resources(service: Service, path: str) -> dict[str, str]:
    """Types of all resources of a tree, by name."""
    items = service.get(f"{path}/resources?nested_depth=5")["resources"]
    return {item["resource_name"]: item["resource_type"] for item in items}


def output(service: Service, path: str) -> Json:
    return service.get(f"{path}/outputs/out")["output"]["output_value"]


def test_an_entry_renames_types_and_a_later_file_wins(operated: Service) -> None:
    body = template({"old": {"type": "OS::Quantum::TestResource"}, "later": {"type": "Acme::Later"}})
    path = operated.created("names", "s", body)
    details = operated.get(f"{path}/resources/later?with_attr=output")["resource"]
    assert (details["resource_type"], "output" in details["attributes"]) == ("Acme::Later", True)


def test_a_type_can_be_a_template_of_the_operators(operated: Service) -> None:
    body = template(
        {"pair": {"type": "Acme::Pair", "properties": {"value": "x"}}},
        outputs={"out": {"value": {"get_attr": ["pair", "both"]}}},
    )
    path = operated.created("pairs", "s", body)
    assert output(operated, path) == "x"
    types = resources(operated, path)
    assert types["pair"] == "Acme::Pair"
    assert types.keys() == {"pair", "left", "right", "only"}
    stored = operated.get(f"{path}/environment")
    assert (stored["resource_registry"], stored["parameter_defaults"]) == ({"resources": {}}, {})
    body["resources"]["pair"]["properties"]["value"] = "y"
    assert operated.call("PATCH", path, {"template": body}).status == 202
    assert operated.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    assert output(operated, path) == "y"
    wrong = template({"pair": {"type": "Acme::Pair", "properties": {"valeu": "x"}}})
    answer = operated.call("POST", "/v1/pairs/stacks", {"stack_name": "wrong", "template": wrong})
    assert fault(answer)[0] == 400
    assert "valeu" in answer.error["message"]


def test_a_file_of_the_request_precedes_one_of_the_same_name(operated: Service) -> None:
    body = template(
        {"leaf": {"type": "leaf.yaml", "properties": {"value": "x"}}},
        outputs={"out": {"value": {"get_attr": ["leaf", "value"]}}},
    )
    assert output(operated, operated.created("files", "theirs", body)) == "x"
    leaf = LEAF.replace("{get_attr: [only, output]}", "own")
    assert output(operated, operated.created("files", "own", body, files={"leaf.yaml": leaf})) == "own"


def test_a_template_may_have_the_type_that_it_replaces(operated: Service) -> None:
    body = template(
        {"text": {"type": "OS::Heat::RandomString", "properties": {"length": 7}}},
        outputs={"out": {"value": {"get_attr": ["text", "value"]}}},
    )
    path = operated.created("wrapped", "s", body)
    assert resources(operated, path).keys() == {"text", "inner"}
    assert len(output(operated, path)) == 7
    body["resources"]["text"]["properties"]["length"] = 9
    operated.call("PUT", path, {"template": body})
    assert operated.settled(path)["stack_status"] == "UPDATE_COMPLETE"
    assert len(output(operated, path)) == 9
    group = {"count": 2, "resource_def": {"type": "OS::Heat::RandomString"}}
    grouped = operated.created(
        "wrapped", "g", template({"group": {"type": "OS::Heat::ResourceGroup", "properties": group}})
    )
    assert resources(operated, grouped).keys() == {"group", "0", "1", "inner"}


def test_the_environment_of_a_stack_precedes(operated: Service) -> None:
    body = template({"text": {"type": "OS::Heat::RandomString"}, "pair": {"type": "Acme::Pair"}})
    registry = {"OS::Heat::RandomString": "OS::Heat::RandomString", "Acme::Pair": "OS::Heat::None"}
    path = operated.created("own", "s", body, environment={"resource_registry": registry})
    assert resources(operated, path).keys() == {"text", "pair"}


def test_parameters_get_the_operators_defaults_on_all_levels(operated: Service) -> None:
    declared = {name: {"type": "string", "default": "none"} for name in ("size", "colour", "other")}
    inner = template(
        {"r": one(value={"get_param": "colour"})},
        parameters={"colour": {"type": "string"}},
        outputs={"out": {"value": {"get_attr": ["r", "output"]}}},
    )
    values = {"list_join": [" ", [{"get_param": name} for name in declared]]}
    nested = {"get_attr": ["inner", "out"]}
    body = template(
        {"r": one(value=values), "inner": {"type": "inner.yaml"}},
        parameters=declared,
        outputs={"out": {"value": [{"get_attr": ["r", "output"]}, nested]}},
    )
    files = {"inner.yaml": json.dumps(inner)}
    path = operated.created("defaults", "s", body, files=files)
    assert output(operated, path) == ["3 blue none", "blue"]
    environment = {"parameter_defaults": {"colour": "green"}, "parameters": {"size": "5"}}
    path = operated.created("defaults", "t", body, files=files, environment=environment)
    assert output(operated, path) == ["5 green none", "green"]
    validation = operated.call("POST", "/v1/defaults/validate", {"template": body, "files": files}).body
    assert validation["Parameters"]["colour"]["Default"] == "blue"


def test_parameters_hidden_by_an_operators_template_are_hidden_in_all_stacks(operated: Service) -> None:
    body = template({"r": one()}, parameters={"secret": {"type": "string"}, "plain": {"type": "string"}})
    files = {"env.yaml": "parameters: {secret: s3same, plain: seen}"}
    named = {"files": files, "environment_files": ["env.yaml"]}
    path = operated.created("hidden", "s", body, **named)
    parameters = operated.get(path)["stack"]["parameters"]
    assert (parameters["secret"], parameters["plain"]) == ("******", "seen")
    assert "s3same" not in json.dumps(operated.get(f"{path}/environment"))
    assert operated.get(f"{path}/files") == {}


def test_a_type_that_is_switched_off_is_unknown(operated: Service) -> None:
    listed = operated.get("/v1/off/resource_types")["resource_types"]
    assert "OS::Heat::TestResource" in listed
    unknown = (
        "The Resource Type (OS::Heat::Delay) could not be found. The operator of this service has switched"
    )
    absent = "HEAT-E99001 Service sahara is not available for resource type OS::Sahara::Cluster"
    for name, text, status in (("OS::Heat::Delay", unknown, 404), ("OS::Sahara::Cluster", absent, 400)):
        assert name not in listed
        body = {"stack_name": "s", "template": template({"r": {"type": name}})}
        for path in ("stacks", "stacks/preview", "validate"):
            sent = body if path != "validate" else {"template": body["template"]}
            answer = operated.call("POST", f"/v1/off/{path}", sent)
            assert answer.status == 400
            assert answer.error["message"].startswith(text)
        assert operated.call("GET", f"/v1/off/resource_types/{name}").status == status


def test_the_types_made_of_templates_are_listed_with_their_schema(operated: Service) -> None:
    assert "Acme::Pair" in operated.get("/v1/list/resource_types")["resource_types"]
    schema = operated.get("/v1/list/resource_types/Acme::Pair?with_description=true")
    assert schema["description"] == "Two of a kind."
    assert schema["properties"]["value"]["required"] is True
    assert schema["properties"]["secret"]["required"] is False
    assert schema["attributes"]["both"]["description"] == "of the left one"
    assert operated.get("/v1/list/resource_types/Acme::Pair/template?template_type=hot")["parameters"]


def test_changed_files_count_after_a_restart_also_for_stacks_that_exist(tmp_path: pathlib.Path) -> None:
    config = installation(tmp_path)
    body = template(
        {"leaf": {"type": "leaf.yaml", "properties": {"value": "x"}}},
        outputs={"out": {"value": {"get_attr": ["leaf", "value"]}}},
    )
    with serving(tmp_path, config) as service:
        leaf = service.created("p", "leaf", body)
        path = service.created("p", "off", template({"r": one()}))
    (tmp_path / "templates/leaf.yaml").write_text(LEAF.replace("{get_attr: [only, output]}", "new"))
    for old in ("10-first", "20-second"):
        (tmp_path / f"environment.d/{old}.yaml").unlink()
    switch = tmp_path / "environment.d/30-off.yaml"
    switch.write_text('resource_registry: {"OS::Heat::Test*": null}')
    with serving(tmp_path, config) as service:
        answer = service.call("PATCH", path, {"existing": True})
        assert (answer.status, "could not be found" in answer.error["message"]) == (400, True)
        assert service.call("DELETE", path).status == 204
        assert service.settled(path)["stack_status"] == "DELETE_COMPLETE"
    switch.unlink()
    with serving(tmp_path, config) as service:
        assert output(service, leaf) == "x"
        assert service.call("PATCH", leaf, {"existing": True, "tags": "t"}).status == 202
        assert service.settled(leaf)["stack_status"] == "UPDATE_COMPLETE"
        assert output(service, leaf) == "new"


@contextlib.contextmanager
def serving(folder: pathlib.Path, config: pathlib.Path) -> Iterator[Service]:
    (folder / "stoker.log").unlink(missing_ok=True)  # Its last line would pass for that of the new process.
    running = Service(folder, conductors=1, config=config)
    try:
        yield running
    finally:
        running.stop()


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "environment.d/a.yaml",
            "resource_registry: {A: [1]}",
            "must be the name of a type or of a",
        ),
        ("environment.d/a.yaml", "resource_registry: {", "not valid"),
        ("environment.d/a.yaml", "registry: {}", '"registry" is not a section'),
        (
            "environment.d/a.yaml",
            "parameters: {a: b}",
            "may only have resource_registry and parameter_defaults",
        ),
        ("environment.d/a.yaml", "resource_registry: {resources: {a: {timeout: 3}}}", "single resources"),
        ("environment.d/a.yaml", "resource_registry: {A: none.yaml}", "there is no template none.yaml"),
        ("environment.d/a.yaml", "resource_registry: {A: 'file:///no/such.yaml'}", "/no/such.yaml"),
        ("environment.d/a.yaml", "resource_registry: {A: 'http://x/a.yaml'}", "no template http://x/a.yaml"),
        ("templates/a.yaml", "heat_template_version: 1999-01-01", "1999-01-01"),
        ("templates/a.yaml", "- a", "must"),
        ("templates/b.yaml", "x" * (2**20 + 1), "larger than"),
    ],
)
def test_a_wrong_file_stops_the_start_with_its_name(
    tmp_path: pathlib.Path, name: str, text: str, reason: str
) -> None:
    for folder in ("environment.d", "templates"):
        (tmp_path / folder).mkdir()
    (tmp_path / name).write_text(text)
    config = write_config(tmp_path, options(tmp_path))
    done = run([BIN / "stoker-api", "--config-file", config])
    assert done.returncode == 1
    assert str(tmp_path / name) in done.stderr or "/no/such" in reason, done.stderr
    assert reason in done.stderr, done.stderr
