"""Quotas: what of a project's things is refused, by which request, and how an operator gives it more."""

import subprocess
from collections.abc import Iterator

import pytest
from client.serving import LIMITS, Answer, Json, Service, serving
from harness import programs
from harness.templates import flat, template

OPTIONS = """\
[stacks]
max_resources_per_project = 5
max_goals_of_project = 20000
max_snapshots_per_project = 2
"""
MANAGE = programs.BIN / "stoker-manage"


@pytest.fixture(scope="module")
def limited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("quotas"), OPTIONS) as service:
        yield service


def manage(service: Service, *arguments: str) -> subprocess.CompletedProcess[str]:
    files = (service.data / "stoker.conf", service.data.parent / LIMITS)
    return programs.run([MANAGE, *(f"--config-file={file}" for file in files), *arguments])


def refused(answer: Answer) -> str:
    """The reason of a refusal."""
    assert (answer.status, answer.error["type"]) == (400, "RequestLimitExceeded"), answer
    return str(answer.error["message"])


def used(service: Service, project: str) -> dict[str, int]:
    quotas = service.get(f"/v1/{project}/quotas")["quotas"]
    return {name: quota["used"] for name, quota in quotas.items() if quota["used"] and name != "goal_bytes"}


def group(count: int) -> Json:
    properties = {"count": count, "resource_def": {"type": "OS::Heat::TestResource"}}
    return template({"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}})


def test_resources_are_counted_with_nested_ones_as_the_request_has_them(limited: Service) -> None:
    text = "Request limit exceeded: The stacks of the project would have 6 resources, above its quota of 5."
    path = limited.created("nested", "a", group(2))
    assert used(limited, "nested") == {"stacks": 1, "resources": 3}
    body = {"stack_name": "b", "template": flat(3)}
    assert refused(limited.call("POST", "/v1/nested/stacks", body)).startswith(text)
    assert refused(limited.call("PUT", path, {"template": group(5)})).startswith(text)
    assert limited.call("PUT", path, {"template": group(4)}).status == 202
    limited.settled(path)
    assert used(limited, "nested") == {"stacks": 1, "resources": 5}
    assert refused(limited.call("POST", "/v1/nested/stacks", {**body, "template": flat(1)})).startswith(text)
    limited.call("DELETE", path)
    limited.settled(path)
    assert used(limited, "nested") == {}
    limited.created("nested", "b", flat(3))


def test_goals_and_snapshots_share_a_quota_of_bytes(limited: Service) -> None:
    body = {"template": flat(1), "files": {"f": "x" * 12000}}
    path = limited.created("large", "a", flat(1))
    text = "Request limit exceeded: The stacks and snapshots of the project would have "
    assert limited.call("PUT", path, body).status == 202
    limited.settled(path)
    answer = limited.call("POST", "/v1/large/stacks", {"stack_name": "b", **body})
    assert refused(answer).startswith(text)
    assert refused(limited.call("POST", f"{path}/snapshots", {})).startswith(text)
    assert limited.call("PUT", path, {"template": flat(1)}).status == 202
    limited.settled(path)
    limited.created("large", "b", flat(1))


def test_snapshots_are_counted_over_all_stacks_of_a_project(limited: Service) -> None:
    paths = [limited.created("kept", name, flat(1)) for name in "abc"]
    for path in paths[:2]:
        assert limited.call("POST", f"{path}/snapshots", {}).status == 200
    text = "You have reached the maximum snapshots per tenant, 2. Please delete some snapshots."
    assert refused(limited.call("POST", f"{paths[2]}/snapshots", {})) == f"Request limit exceeded: {text}"
    assert limited.get(f"{paths[2]}/snapshots") == {"snapshots": []}


def test_an_operator_gives_a_project_more(limited: Service) -> None:
    body = {"stack_name": "s", "template": flat(6)}
    refused(limited.call("POST", "/v1/grown/stacks", body))
    assert manage(limited, "quota", "set", "grown", "resources=6", "snapshots=-1").returncode == 0
    limited.created("grown", "s", flat(6))
    lines = manage(limited, "quota", "show", "grown", "-f", "value").stdout.splitlines()
    assert {"resources 6 5 6", "snapshots -1 2 0", "stacks 512 512 1"} <= set(lines)
    assert manage(limited, "quota", "delete", "grown").returncode == 0
    assert "resources 5 5 6" in manage(limited, "quota", "show", "grown", "-f", "value").stdout
    for wrong, text in (("servers=1", "there is no quota servers"), ("stacks=-2", "a limit is a number")):
        done = manage(limited, "quota", "set", "grown", wrong)
        assert (done.returncode, text in done.stderr) == (1, True), done.stderr
