"""``stoker-manage --url``: the operator's commands where the database is not at hand."""

import json
import subprocess
from collections.abc import Iterator

import pytest
from client.serving import Json, Service, serving
from harness import programs

WITHOUT_KEYSTONE = {"OS_AUTH_TYPE": "none"}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    with serving(tmp_path_factory.mktemp("over_api"), "", conductors=2) as service:
        yield service


def manage(
    url: str, *arguments: str, access: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command without a configuration, with these variables as credentials."""
    variables = {**(WITHOUT_KEYSTONE if access is None else access), "PYTHONWARNINGS": "ignore"}
    return programs.run([programs.BIN / "stoker-manage", "--url", url, *arguments], env=variables)


def run(service: Service, *arguments: str) -> str:
    """The output of a command that must succeed."""
    done = manage(f"{service.url}/v1", *arguments)
    assert done.returncode == 0, done
    return done.stdout


def listing(service: Service, *arguments: str) -> Json:
    return json.loads(run(service, *arguments, "-f", "json"))


def test_a_conductor_is_drained_with_a_reason_and_returns(served: Service) -> None:
    drained = run(served, "ring", "drain", "conductor-1", "--reason", "a new kernel", "--wait")
    assert "conductor-1 is draining: it owns 0 shards" in drained
    rows = {row["Host"]: row for row in listing(served, "ring", "show")}
    assert (rows["conductor-1"]["State"], rows["conductor-2"]["Shards"]) == ("draining", 4096)
    assert rows["conductor-1"]["Request"]["reason"] == "a new kernel"
    assert rows["conductor-2"]["Request"] == {"by": None, "time": None, "reason": None}
    assert " requested at " in served.process.text()
    assert ": a new kernel" in served.process.text()
    assert "conductor-1 is active" in run(served, "ring", "undrain", "conductor-1", "--wait")
    assert run(served, "ring", "rebalance", "--wait").startswith("settled: every one of 4096 shards")
    [move] = listing(served, "ring", "plan", "--leave", "conductor-1")
    assert (move["From"], move["To"]) == ("conductor-1", "conductor-2")
    hosts = [row["Host"] for row in listing(served, "service", "list") if row["Status"] == "up"]
    assert hosts == ["conductor-1", "conductor-2"]


def test_quotas_are_set_listed_and_deleted(served: Service) -> None:
    run(served, "quota", "set", "shop", "stacks=7")
    assert "stacks 7 512 0" in run(served, "quota", "show", "shop", "-f", "value")
    [row] = listing(served, "quota", "list")
    assert (row["Project"], row["stacks"], row["snapshots"]) == ("shop", 7, None)
    run(served, "quota", "delete", "shop")
    assert listing(served, "quota", "list") == []


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("stack fail s", "`stack fail` does not work over the API: leave out --url, and run it on a host"),
        ("config validate", "`config validate` does not work over the API"),
        ("ring show --stack s", "--stack needs the database; over the API `openstack stack inspect s`"),
        ("ring drain nobody", "Stoker answers 404 to POST /v1/admin/ring/nobody/drain: "),
        ("ring plan --leave nobody", "nobody is not on the ring"),
    ],
)
def test_a_command_that_cannot_work_says_why(served: Service, command: str, text: str) -> None:
    done = manage(f"{served.url}/v1", *command.split())
    assert done.returncode == 1
    assert text in done.stderr


@pytest.mark.parametrize(
    ("url", "access", "text"),
    [
        ("http://127.0.0.1:1/v1", {"OS_AUTH_TYPE": "none"}, "Stoker does not answer GET /v1/admin/ring"),
        ("http://127.0.0.1:1", {"OS_AUTH_TYPE": "none"}, "is not an address of the Orchestration API"),
        ("http://127.0.0.1:1/v1", {}, "OS_* variables, or OS_CLOUD and clouds.yaml"),
    ],
)
def test_a_wrong_address_and_missing_credentials_are_explained(
    url: str, access: dict[str, str], text: str
) -> None:
    done = manage(url, "ring", "show", access=access)
    assert done.returncode == 1
    assert text in done.stderr
