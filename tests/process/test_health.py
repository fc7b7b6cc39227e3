"""A conductor's page of health and metrics, as a load balancer or a probe reads it."""

import pathlib
import urllib.error
import urllib.request

import pytest
from harness.deployment import Deployment, Servers
from harness.ports import HOST, free_port
from harness.waiting import wait_for

HEALTHY = "stoker_healthy "


def get(url: str) -> tuple[int, str]:
    """Return status and text of a page."""
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def healthy(port: int) -> float:
    """Return the metric."""
    _, page = get(f"http://{HOST}:{port}/metrics")
    return next(float(line.removeprefix(HEALTHY)) for line in page.splitlines() if line.startswith(HEALTHY))


@pytest.mark.commit
def test_health_distinguishes_draining_from_dead(tmp_path: pathlib.Path, servers: Servers) -> None:
    deployment = servers.deployment(tmp_path)
    try:
        _drain_and_kill(deployment)
    finally:
        deployment.stop()


def _drain_and_kill(deployment: Deployment) -> None:
    port = free_port()
    page = f"http://{HOST}:{port}"
    conductor = deployment.launch_conductor("one", "--metrics-port", str(port))
    conductor.wait_for_text("is in the ring and serves")
    wait_for(lambda: get(f"{page}/healthcheck") == (200, "serving\n"), 60)
    assert healthy(port) == 1
    deployment.manage("ring", "drain", "one")
    wait_for(lambda: get(f"{page}/healthcheck")[0] == 503, 60)
    assert get(f"{page}/healthcheck")[1].startswith("draining: ")
    assert healthy(port) == 0
    deployment.manage("ring", "undrain", "one")
    wait_for(lambda: get(f"{page}/healthcheck") == (200, "serving\n"), 60)
    request = urllib.request.Request(f"{page}/healthcheck", method="HEAD")
    with urllib.request.urlopen(request, timeout=60) as answer:
        assert (answer.status, answer.read()) == (200, b"")
    assert get(f"{page}/else")[0] == 404
    conductor.kill()
    with pytest.raises(OSError, match="refused"):
        get(f"{page}/healthcheck")
