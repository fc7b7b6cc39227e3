"""An operator's view of an API and two conductors while things go wrong: by a real Prometheus, by the
dashboard's queries, by reports and logs."""

import json
import pathlib
import re
import signal
import time
import typing
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
import sqlalchemy as sa
from harness import templates
from harness.deployment import Deployment, Servers
from harness.ports import HOST, free_port
from harness.processes import Process
from harness.programs import BIN, Program
from harness.prometheus import Prometheus
from harness.server import MissingServer
from harness.waiting import wait_for

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
DASHBOARD = json.loads((ROOT / "etc/grafana/stoker.json").read_text())
OPTIONS = "[metrics]\napi = true\n[stacks]\ncancel_grace = 1\n[api]\ndrain = 300\n"
REPORT_END = "Census "
"""The last of a conductor's duties is at the report's end."""


@dataclass
class Site:
    """The processes, and what was done with them.

    :ivar blocked: the stack whose step hangs.
    :ivar one: the conductor that lives; two was killed.
    :ivar orphaned: number of tasks that two held when it was killed.
    """

    deployment: Deployment
    prometheus: Prometheus
    ports: dict[str, int]
    creates: int = 0
    blocked: str = ""
    orphaned: int = 0

    @property
    def released(self) -> pathlib.Path:
        """A file: the step hangs until it is made."""
        return self.deployment.directory / "released"

    @property
    def one(self) -> Process:
        return self.deployment.conductors["one"]

    def create(self, name: str, template: Json, **fields: Json) -> str:
        self.creates += 1
        return self.deployment.create(name, template, **fields)

    def sql(self, text: str, **values: Json) -> None:
        engine = sa.create_engine(self.deployment.database_url, poolclass=sa.NullPool)
        with engine.begin() as conn:
            conn.execute(sa.text(text), values)

    def claims(self, host: str) -> int:
        """How many tasks a conductor holds now."""
        engine = sa.create_engine(self.deployment.database_url, poolclass=sa.NullPool)
        held = "SELECT count(*) FROM task WHERE state = 'running' AND member LIKE :host"
        with engine.begin() as conn:
            return int(conn.execute(sa.text(held), {"host": f"{host}/%"}).scalar_one())

    def wait_value(self, expression: str, value: float, within: float = 60.0) -> None:
        """Wait until the expression has this value, for one that is counted a while after it is true."""
        wait_for(
            lambda: self.prometheus.value(expression) == value,
            within,
            lambda: f"{expression}: {self.prometheus.query(expression)}, not {value}",
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, servers: Servers) -> Iterator[Site]:
    deployment = servers.deployment(tmp_path_factory.mktemp("observed"), OPTIONS, plugins=True)
    ports = {"one": free_port(), "two": free_port()}
    targets = {"stoker-api": [deployment.port], "stoker-conductor": [*ports.values()]}
    try:
        with Prometheus(targets) as prometheus:
            observed = Site(deployment, prometheus, ports)
            deployment.start_api()
            for host, port in ports.items():
                deployment.launch_conductor(host, "--metrics-port", str(port))
            for host in ports:
                deployment.conductors[host].wait_for_text("is in the ring and serves")
            live_through(observed)
            yield observed
    except MissingServer as error:
        pytest.fail(str(error), pytrace=False)
    finally:
        deployment.stop()


def live_through(site: Site) -> None:
    """Work, a breakpoint, timeouts of a resource and a stack, a call that hangs, a death."""
    deployment = site.deployment
    site.wait_value("sum(stoker_shards_owned)", 4096)
    first = site.create("work", templates.layered(4, 10))
    assert deployment.wait_final(first)["stack_status"] == "CREATE_COMPLETE"
    site.wait_value('sum(stoker_results_total{kind="create",state="done"})', 40)
    hooks = {"resource_registry": {"resources": {"r0": {"hooks": "pre-create"}}}}
    site.create("held", templates.flat(1), environment=hooks)
    short = {"resource_registry": {"resources": {"r0": {"timeout": 1, "retries": 0}}}}
    late = site.create("slow", templates.flat(1, wait_secs=500), environment=short)
    assert deployment.wait_final(late)["stack_status"] == "CREATE_FAILED"
    site.wait_value('sum(stoker_timeouts_total{what="resource"})', 1)
    gate = deployment.directory / "gate"
    gated = {"type": "Test::Gated", "properties": {"until": str(gate)}}
    unfinished = site.create("left", templates.template({f"r{n}": gated for n in range(30)}))
    site.wait_value("sum(stoker_tasks_in_hand)", 30)
    site.orphaned = site.claims("two")
    deployment.conductors["two"].kill()
    gate.touch()
    deployment.wait_final(unfinished)
    calls = deployment.directory / "calls"
    calls.mkdir()
    hangs = {"type": "Test::Blocking", "properties": {"until": str(site.released), "calls": str(calls)}}
    site.blocked = site.create("hangs", templates.template({"deaf": hangs}))
    wait_for(lambda: len(list(calls.iterdir())) == 1)
    site.wait_value("sum(stoker_threads_busy)", 1)
    site.sql("UPDATE stack SET deadline_at = :at WHERE name = 'hangs'", at=time.time())
    assert deployment.wait_final(site.blocked)["stack_status"] == "CREATE_FAILED"
    site.wait_value("sum(stoker_threads_written_off)", 1)


def test_a_report_names_the_step_that_hangs_and_holds_no_secret(site: Site) -> None:
    config = site.deployment.config.read_text()
    secrets = [re.search(r"key = (\S+)", config), re.search(r"//(\w+:\w+)@", config)]
    assert site.deployment.api is not None
    site.deployment.api.send(signal.SIGUSR2)
    site.one.send(signal.SIGUSR2)
    site.one.wait_for_text(REPORT_END)
    report = site.one.text()
    assert re.search(
        r"this conductor is one/\w+, active\nversion \w+, 1 members:\n  one/\w+ active, weight 1", report
    )
    assert "4096 shards owned: 0-4095" in report
    stack_id = site.blocked.rsplit("/", 1)[1]
    step = rf"\n(\d+) +\d+ +{stack_id} +deaf +Test::Blocking +\S+Z +[\d.]+ +detached\n"
    [thread] = re.findall(step, report)
    stack = report.split(f"Thread #{thread} ")[1].split("---  ")[0]
    assert "plugins.py" in stack, "where it hangs"
    assert "_hang" in stack
    assert re.search(r"\nTaskDue +20\S+Z +[\d.]+ s +well\n", report)
    site.deployment.api.wait_for_text("Requests ")
    wait_for(lambda: site.deployment.api.text().rstrip().endswith("none"), 60)
    for secret in (match[1] for match in secrets if match):
        assert secret not in report
        assert secret not in site.deployment.api.text()


def test_prometheus_has_the_metrics_of_all_that_happened(site: Site) -> None:
    prometheus = site.prometheus
    instance = f'instance="{HOST}:{site.ports["one"]}"'
    site.wait_value(f'up{{job="stoker-conductor",{instance}}}', 1)
    site.wait_value('sum(up{job="stoker-conductor"})', 1)  # Two is dead.
    site.wait_value("stoker_ring_members", 1)
    site.wait_value("sum(stoker_shards_owned)", 4096)
    site.wait_value("count(stoker_ring_info)", 1)
    site.wait_value('sum(stoker_tasks{state="held"})', 1)
    site.wait_value('sum(stoker_timeouts_total{what="stack"})', 1)
    assert prometheus.value(
        'histogram_quantile(1, sum by (le) (stoker_due_lag_seconds_bucket{what="stack"}))'
    )
    takeovers = prometheus.value("stoker_takeovers_total")
    assert takeovers is not None
    assert 0 < takeovers <= site.orphaned, "what two held, and nothing else"
    site.wait_value('stoker_cancels_answered_total{how="given_up"}', 1)
    posts = 'route="/v1/{tenant_id}/stacks",method="POST",status="201"'
    site.wait_value(f"stoker_api_requests_total{{{posts}}}", site.creates)
    assert prometheus.value('stoker_hints_received_total{method="run_tasks"}')
    assert prometheus.value('sum(stoker_hints_sent_total{job="stoker-api",method="run_tasks"})')
    site.wait_value("sum(stoker_database_errors_total)", 0)
    assert {labels["program"] for labels, _ in prometheus.query("stoker_build_info")} == {
        "stoker-api",
        "stoker-conductor",
    }


def test_every_query_of_the_dashboard_returns_data(site: Site) -> None:
    variables = {"$instance": ".+", "$__rate_interval": "5m"}
    empty = []
    for panel in DASHBOARD["panels"]:
        for target in panel.get("targets", []):
            expression = target["expr"]
            for name, value in variables.items():
                expression = expression.replace(name, value)
            assert "$" not in expression
            if not site.prometheus.query(expression):
                empty.append(f"{panel['title']}: {expression}")
    assert not empty, "\n".join(empty)


def test_the_documented_expressions_are_valid(site: Site) -> None:
    guide = (ROOT / "doc/observation.md").read_text()
    table = guide[guide.index("| expression |") : guide.index("## Health")]
    expressions = [
        text for line in table.splitlines()[2:] for text in re.findall(r"`([^`]+)`", line.split(" | ")[0])
    ]
    assert len(expressions) >= 8
    for expression in expressions:
        site.prometheus.query(expression)  # An error of PromQL's is one of HTTP's.


def test_the_result_that_comes_too_late_is_refused(site: Site) -> None:
    site.released.touch()
    site.wait_value("stoker_results_refused_total", 1)
    site.wait_value("stoker_threads_written_off", 0)


def test_log_lines_have_their_request_project_and_stack(site: Site) -> None:
    assert site.deployment.api is not None
    stack_id = site.blocked.rsplit("/", 1)[1]
    begun = rf"\[(req-\S+) t {stack_id}\] Stack \S+ \({stack_id}\): CREATE started as (trv-\S+)\n"
    [(request, traversal)] = re.findall(begun, site.deployment.api.text())
    assert re.search(rf"\[{request} t -\] POST /v1/{{tenant_id}}/stacks 201 ", site.deployment.api.text())
    log = site.one.text()
    assert re.search(rf"\[{traversal} t {stack_id}\] Stack \S+ \({stack_id}\) timed out", log)
    prefix = f"[{request} t {stack_id}] "
    assert re.search(rf"{re.escape(prefix)}The step of task \d+ \(resource deaf, create\) did not stop", log)
    assert re.search(rf"{re.escape(prefix)}A late result of task \d+", log)
    for line in [*log.splitlines(), *site.deployment.api.text().splitlines()]:
        if stack_id in line and re.match(r"\d{4}-\d\d-\d\d ", line):
            assert re.search(rf" \[\S+ t {stack_id}\] ", line), line


def test_a_draining_api_answers_requests_and_is_not_healthy(site: Site) -> None:
    api = site.deployment.api
    assert api is not None
    api.send(signal.SIGTERM)
    wait_for(lambda: site.deployment.call("GET", "/healthcheck")[0] == 503, 60)
    assert "draining" in site.deployment.call("GET", "/healthcheck")[1]["error"]["message"]
    assert site.deployment.call("GET", "/v1/t/stacks")[0] == 200
    assert api.stop() == 0, "a second signal ends the drain"


def test_the_dashboard_is_one_that_grafana_loads() -> None:
    """The dashboard fits its JSON model: ids, places that do not overlap, units, sources by variable."""
    panels = DASHBOARD["panels"]
    assert DASHBOARD["schemaVersion"] >= 36
    assert {variable["name"] for variable in DASHBOARD["templating"]["list"]} == {"datasource", "instance"}
    assert len({panel["id"] for panel in panels}) == len(panels)
    occupied: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & occupied, panel["title"]
        assert max(x for x, _ in cells) < 24
        occupied |= cells
        if panel["type"] != "row":
            assert panel["fieldConfig"]["defaults"]["unit"] in ("s", "ops", "reqps", "short")
            assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
            sources = [panel["datasource"], *(target["datasource"] for target in panel["targets"])]
            assert all(s == {"type": "prometheus", "uid": "${datasource}"} for s in sources)


def test_a_port_in_use_is_reported_at_the_start(tmp_path: pathlib.Path, site: Site) -> None:
    port = str(site.ports["one"])
    command = [BIN / "stoker-conductor", "--config-file", site.deployment.config, "--metrics-port", port]
    done = Program(command, log=tmp_path / "log")
    wait_for(lambda: not done.is_running, 120, done.tail)
    assert done.exit_code == 1
    assert (
        f"stoker-conductor: cannot start: [metrics] port: 127.0.0.1:{port} cannot be listened on"
        in done.text()
    )
    assert "Traceback" not in done.text()
