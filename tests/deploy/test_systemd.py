"""The units under a real systemd: start, reload, crash, hang, stop, and what exit codes follow."""

import contextlib
import pathlib
import re
import subprocess
import typing
from collections.abc import Iterator

import psycopg
import pytest
from deploy.machine import ROOT, Machine
from harness import templates
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.server import MissingServer
from harness.waiting import wait_for

Json = typing.Any
UNITS = sorted((ROOT / "systemd").glob("*.service"))
API = "stoker-api"
ONE = "stoker-conductor@1"
TWO = "stoker-conductor@2"
WATCHDOG = 3.0
FAR_TOO_OPEN = 20
"""Tenths of systemd's exposure level."""


def load(seconds: float) -> Json:
    """Return a template of 200 resources, each of which waits so long."""
    names = (str(number) for number in range(200))
    definition = {"type": "OS::Heat::TestResource"}
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            f"r{n}": {**definition, "properties": {"wait_secs": seconds, "value": n}} for n in names
        },
    }


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_gives_the_daemon_no_more_than_it_needs(unit: pathlib.Path) -> None:
    command = ["systemd-analyze", "security", "--offline=yes", f"--threshold={FAR_TOO_OPEN}", unit]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    match = re.search(r"Overall exposure level for \S+: ([0-9.]+)", done.stdout)
    assert match is not None
    assert float(match[1]) * 10 <= FAR_TOO_OPEN


class Site:
    """The machine and what its daemons work on."""

    def __init__(self, directory: pathlib.Path, postgresql: PostgreSQL, *, bus: str, group: str) -> None:
        self.postgresql = postgresql
        self.deployment = Deployment(
            directory, database_url=postgresql.create_database(), transport_url=bus, backend_url=group
        )
        self.config = self.deployment.config.read_text()
        self.machine = Machine(directory, config=self.config, watchdog=WATCHDOG)

    def up(self) -> None:
        """Start all, as far as it does not run."""
        self.machine.systemctl("start", API, ONE, TWO)

    def down(self) -> None:
        """Stop all, and forget what had failed."""
        self.machine.call("systemctl", "kill", "-s", "KILL", "stoker-*")
        self.machine.systemctl("stop", API, ONE, TWO)
        self.machine.systemctl("reset-failed")

    def configure(self, text: str) -> None:
        """Write the configuration: the common options, and these."""
        self.machine.path("/etc/stoker/stoker.conf").write_text(f"{self.config}\n{text}")

    @contextlib.contextmanager
    def locked(self, table: str) -> Iterator[None]:
        """The database lets nobody use the table."""
        name = self.deployment.database_url.rpartition("/")[2]
        url = self.postgresql.url_of(name).replace("+psycopg", "")
        with psycopg.connect(url) as connection:
            connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE".encode())
            yield
            connection.rollback()

    def claims(self, host: str) -> int:
        """How many tasks a conductor holds now."""
        name = self.deployment.database_url.rpartition("/")[2]
        held = f"SELECT count(*) FROM task WHERE state = 'running' AND member LIKE '{host}/%'"
        return int(str(self.postgresql.execute(held, name)[0][0]))

    def conductors(self) -> dict[str, str]:
        """Host and status as the API reports them."""
        status, body = self.deployment.call("GET", "/v1/t/services")
        assert status == 200, body
        return {item["host"]: item["status"] for item in body["services"]}


@pytest.fixture(scope="module")
def site(
    tmp_path_factory: pytest.TempPathFactory, postgresql: PostgreSQL, rabbitmq: RabbitMQ, etcd: Etcd
) -> Iterator[Site]:
    try:
        started = Site(
            tmp_path_factory.mktemp("systemd"), postgresql, bus=rabbitmq.create_vhost(), group=etcd.url
        )
    except MissingServer as error:
        pytest.fail(str(error), pytrace=False)
    yield started
    started.machine.close()


@pytest.fixture
def machine(site: Site) -> Iterator[Machine]:
    """The machine with all daemons up, and the configuration as it was."""
    site.configure("")
    site.up()
    yield site.machine
    if any(site.machine.show(unit, "ActiveState") != "active" for unit in (API, ONE, TWO)):
        site.down()


def test_a_started_unit_serves_when_systemctl_returns(site: Site, machine: Machine) -> None:
    wait_for(lambda: site.conductors() == {"boiler-1": "up", "boiler-2": "up"}, 120)
    path = site.deployment.create("first", load(1))
    assert machine.show(ONE, "StatusText") == "boiler-1 is in the ring"
    assert site.deployment.wait_final(path, 200)["stack_status"] == "CREATE_COMPLETE"


def test_a_daemon_runs_as_its_own_user_with_no_right_at_all(machine: Machine) -> None:
    for unit in (API, ONE):
        status = machine.run("cat", f"/proc/{machine.show(unit, 'MainPID')}/status")
        fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
        assert fields["Uid"].split()[0] == machine.run("id", "-u", "stoker").strip()
        assert (fields["CapBnd"].strip("0"), fields["NoNewPrivs"], fields["Seccomp"]) == ("", "1", "2")


def test_expressions_are_evaluated_within_limits(site: Site, machine: Machine) -> None:
    late = {"get_attr": ["source", "output"]}
    resources = {
        "source": {"type": "OS::Heat::TestResource", "properties": {"value": "a" * 60 + "!"}},
        "early": yaql("range(5).sum()", None),
        "late": yaql("$.data.len()", late),
    }
    template = {"heat_template_version": "2018-08-31", "resources": resources}
    path = site.deployment.create("expressions", template)
    stack = site.deployment.wait_final(path)
    assert stack["stack_status"] == "CREATE_COMPLETE", stack
    for expression in ("pow(9, pow(9, 9))", "shiftBitsLeft(1, 99999999999)"):
        template = {"heat_template_version": "2018-08-31", "resources": {"r": yaql(expression, None)}}
        body = {"stack_name": "refused", "template": template}
        status, answer = site.deployment.call("POST", "/v1/t/stacks", body)
        assert (status, answer["error"]["type"]) == (400, "RequestLimitExceeded"), answer
    poison = {"r": yaql("regex('(a+)+$').matches($.data)", late)}
    poison["source"] = resources["source"]
    path = site.deployment.create("poison", {"heat_template_version": "2018-08-31", "resources": poison})
    stack = site.deployment.wait_final(path)
    assert "took more than 1 s" in stack["stack_status_reason"]


def yaql(expression: str, data: object) -> dict[str, object]:
    value = {"yaql": {"expression": expression, "data": data}}
    return {"type": "OS::Heat::TestResource", "properties": {"value": value}}


def test_a_reload_applies_reloadable_options_and_names_the_others(site: Site, machine: Machine) -> None:
    before = machine.show(ONE, "MainPID")
    site.configure("[conductor]\nweight = 3\nthreads = 7\n[DEFAULT]\ndebug = true\n")
    machine.systemctl("reload", ONE, API)
    status = "the configuration was read again; changed: DEFAULT.debug, conductor.weight; need a restart: "
    machine.wait_for(ONE, "StatusText", f"{status}conductor.threads")
    assert machine.show(ONE, "ActiveState") == "active"
    assert machine.show(ONE, "MainPID") == before
    machine.wait_for(API, "StatusText", f"{status}conductor.threads")
    wait_for(lambda: " DEBUG " in machine.log(ONE), 120)
    rows = "SELECT weight FROM conductor WHERE host = 'boiler-1'"
    name = site.deployment.database_url.rpartition("/")[2]
    wait_for(lambda: site.postgresql.execute(rows, name) == [(3.0,)], 120)

    site.configure("[conductor]\nweight = much\n[DEFAULT]\ndebug = false\n")
    machine.systemctl("reload", ONE)
    wait_for(lambda: "stays as it is" in machine.show(ONE, "StatusText"), 120)
    assert "weight" in machine.show(ONE, "StatusText")
    assert site.postgresql.execute(rows, name) == [(3.0,)]


def test_a_report_is_written_on_sigusr2_and_the_daemon_continues(machine: Machine) -> None:
    for unit, section in ((API, "Requests"), (ONE, "Duties")):
        before = machine.show(unit, "MainPID")
        machine.systemctl("kill", "--kill-whom=main", "-s", "USR2", unit)
        wait_for(lambda: f" {section} " in machine.log(unit), 120, lambda: machine.log(unit)[-3000:])  # noqa: B023
        assert "product = Stoker" in machine.log(unit)
        assert machine.show(unit, "ActiveState") == "active"
        assert machine.show(unit, "MainPID") == before


def test_a_killed_daemon_is_restarted(machine: Machine) -> None:
    before = machine.show(ONE, "MainPID")
    machine.systemctl("kill", "-s", "KILL", ONE)
    machine.wait_restarted(ONE, before)


def test_a_process_that_hangs_is_replaced(machine: Machine) -> None:
    before = machine.show(API, "MainPID")
    restarts = int(machine.show(API, "NRestarts"))
    with machine.watched(API):
        machine.systemctl("kill", "-s", "STOP", API)
        machine.wait_restarted(API, before)
    assert int(machine.show(API, "NRestarts")) > restarts


def test_a_conductor_whose_work_loop_hangs_is_replaced(site: Site, machine: Machine) -> None:
    before = machine.show(ONE, "MainPID")
    logged = len(machine.log(ONE))

    def is_printed(text: str) -> bool:
        return text in machine.log(ONE)[logged:]

    with machine.watched(ONE):
        with site.locked("task"):
            # What faulthandler prints at the watchdog's signal: where each thread was.
            wait_for(lambda: is_printed("Fatal Python error: Aborted"), 180)
            wait_for(lambda: is_printed("the watchdog gets no notification"), 180)
        machine.wait_restarted(ONE, before)


def test_an_idle_conductor_is_not_restarted(machine: Machine) -> None:
    """It feeds its watchdog in time, again and again; a stall of the whole machine is not its fault."""
    before = {unit: machine.show(unit, "MainPID") for unit in (API, ONE, TWO)}
    began = {unit: machine.fed(unit) for unit in before}
    last = dict(began)

    def is_fed_for_long_enough(unit: str) -> bool:
        fed = machine.fed(unit)
        if fed - last[unit] > WATCHDOG:
            began[unit] = fed
        last[unit] = fed
        return fed - began[unit] > 1.5 * WATCHDOG

    wait_for(lambda: {is_fed_for_long_enough(unit) for unit in began} == {True}, 180)
    assert {unit: machine.show(unit, "MainPID") for unit in began} == before


def test_a_stop_under_load_ends_cleanly_and_the_others_continue(site: Site, machine: Machine) -> None:
    loaded = load(10)
    loaded["resources"] |= templates.HELD
    path = site.deployment.create("loaded", loaded)
    wait_for(lambda: site.claims("boiler-1") > 0, 120)
    machine.systemctl("stop", ONE)
    assert site.deployment.show(path)["stack_status"] == "CREATE_IN_PROGRESS"
    assert (machine.show(ONE, "Result"), machine.show(ONE, "ExecMainStatus")) == ("success", "0")
    assert machine.show(ONE, "ActiveState") == "inactive"
    signal = f"{path}/resources/handle/signal"
    wait_for(lambda: site.deployment.call("POST", signal, {"status": "SUCCESS"})[0] == 200, 120)
    assert site.deployment.wait_final(path, 200)["stack_status"] == "CREATE_COMPLETE"


def test_a_stop_that_had_to_leave_work_behind_shows(site: Site, machine: Machine) -> None:
    site.configure("[conductor]\ndrain = 1\n")
    machine.systemctl("reload", ONE)
    wait_for(lambda: "conductor.drain" in machine.show(ONE, "StatusText"), 120)
    site.deployment.create("stuck", load(3600))
    wait_for(lambda: site.claims("boiler-1") > 0, 120)
    # A task that waits for its next poll then cannot be passed to the others.
    with site.locked("task"):
        machine.call("systemctl", "stop", ONE)
    assert (machine.show(ONE, "Result"), machine.show(ONE, "ExecMainStatus")) == ("exit-code", "1")


def test_a_daemon_that_cannot_start_tries_again_until_it_can(site: Site, machine: Machine) -> None:
    machine.systemctl("stop", ONE)
    site.configure("[database]\nconnection = postgresql+psycopg://u@127.0.0.1:1/none\n")
    assert machine.call("systemctl", "start", ONE).returncode == 1
    message = "cannot start: [database] connection"
    wait_for(lambda: machine.log(ONE).count(message) >= 2, 180, lambda: machine.log(ONE)[-3000:])
    site.configure("")
    machine.wait_for(ONE, "ActiveState", "active")
