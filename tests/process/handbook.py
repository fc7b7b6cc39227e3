"""doc/handbook.md as the tests read it, and the stage on which what it says is brought about."""

import contextlib
import dataclasses
import io
import json
import pathlib
import re
import shlex
import textwrap
import time
import typing
from collections.abc import Callable, Iterator, Sequence

import sqlalchemy as sa
from client.commands import OpenStack
from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.ports import free_port
from harness.postgresql import PostgreSQL
from harness.processes import Process
from harness.programs import BIN, Program
from harness.rabbitmq import RabbitMQ
from harness.server import Server
from harness.third_party import with_plugins
from harness.waiting import wait_for
from oslo_config import cfg
from stoker.cli.programs import manage

Json = typing.Any
HANDBOOK = pathlib.Path(__file__).parents[2] / "doc" / "handbook.md"
HOSTS = ("c-one", "c-two")
READY = "is in the ring and serves"
GRACE = 30.0
OPTIONS = f"""
[coordination]
timeout = 30
[conductor]
threads = 2
most_written_off = 0
[stacks]
cancel_grace = {GRACE}
"""
FOREVER = 3600


class Commands(typing.NamedTuple):
    code: int
    output: str


def chapters() -> dict[str, list[str]]:
    """The lines of each chapter by its heading."""
    texts: dict[str, list[str]] = {}
    chapter: list[str] = []
    for line in HANDBOOK.read_text().splitlines():
        if line.startswith("#"):
            chapter = []
        if line.startswith("### "):
            texts[line[4:]] = chapter
        else:
            chapter.append(line)
    return texts


def excerpt(heading: str) -> list[str]:
    """Return the output of ``stack inspect`` that the chapter shows."""
    block = [line[4:] for line in chapters()[heading] if line.startswith("    ")]
    assert block[0] == "$ stoker-manage stack inspect STACK"
    return block[1:]


def lines_as_shown(shown_lines: Sequence[str], printed: str) -> list[str]:
    """The printed lines that fit those shown, in order; an ellipsis stands for anything.

    :raises AssertionError: one fits none.
    """
    printed_lines = iter(printed.splitlines())
    fitting = []
    for line in shown_lines:
        pattern = ".*".join(re.escape(part) for part in line.split("…"))
        match = next((text for text in printed_lines if re.fullmatch(pattern, text)), None)
        assert match is not None, f"{line!r} is not in its place in:\n{printed}"
        fitting.append(match)
    return fitting


def proposed(lines: Sequence[str]) -> list[str]:
    """The commands among the lines."""
    return [m[1] for line in lines if (m := re.fullmatch(r" +(?:sooner|or): (.*)", line))]


def template(**resources: Json) -> Json:
    return {"heat_template_version": "2018-08-31", "resources": resources}


QUICK = {"type": "OS::Heat::TestResource"}


@dataclasses.dataclass
class Stage:
    """Two conductors, an API, and servers of their own, which are stopped and restarted.

    :ivar away: a server that was taken away, and the option that names it: it returns when
        ``config validate --connect`` has named it.
    :ivar is_back: whether it has returned: conductors may be quicker than the next command, which then has
        nothing to do.
    :ivar before_commands: called when it has been inspected, before what was proposed is run.
    """

    directory: pathlib.Path
    broker: RabbitMQ
    postgres: PostgreSQL
    etcd: Etcd
    away: tuple[Server, str] | None = None
    is_back: bool = False
    before_commands: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.things = self.directory / "things"
        self.things.mkdir()
        self.deployment = Deployment(
            self.directory,
            database_url=self.postgres.create_database(),
            transport_url=self.broker.create_vhost(),
            backend_url=self.etcd.url,
            options=OPTIONS,
            env=with_plugins(self.directory / "plugins"),
        )
        self.deployment.start_api()
        self.client = OpenStack(typing.cast(Json, self.deployment), "t", self.directory)
        self._others: list[Process] = []

    def stop(self) -> None:
        for process in self._others:
            process.kill()
        self.deployment.stop()

    # -- conductors --------------------------------------------------------------------------------

    def whole(self) -> None:
        """All servers are there, and both conductors are in the ring."""
        self.away = None
        self.is_back = False
        self.before_commands = lambda: None
        for server in (self.postgres, self.etcd, self.broker):
            server.start()
        for host in HOSTS:
            daemon = self.deployment.conductors.get(host)
            if daemon is None or not daemon.is_running:
                self.restart(host)
        count = (
            "SELECT count(*) FROM conductor "
            "WHERE state = 'active' AND shards_owned > 0 AND heartbeat_at > :at"
        )
        wait_for(lambda: self.query(count, at=time.time() - 2)[0][0] == len(HOSTS), 60)

    def restart(self, host: str) -> None:
        """Restart it as systemd does."""
        daemon = self.deployment.conductors.get(host)
        if daemon is not None and daemon.is_running:
            daemon.resume()
            daemon.kill()
        times = daemon.text().count(READY) if daemon is not None else 0
        new = self.deployment.launch_conductor(host)
        wait_for(lambda: new.text().count(READY) > times, 60, new.tail)

    def departures(self, host: str) -> int:
        """How often the conductor has left the ring because it lost its place in the group."""
        return self.deployment.conductors[host].text().count("Dropped out of the ring as ")

    def holder(self, stack_id: str) -> str:
        """Who holds a task of the stack."""
        held = "SELECT member FROM task WHERE stack_id = :stack AND state = 'running'"
        wait_for(lambda: bool(self.query(held, stack=stack_id)), 60)
        return str(self.query(held, stack=stack_id)[0][0]).partition("/")[0]

    # -- stacks ------------------------------------------------------------------------------------

    def hanging(self, seconds: float = FOREVER) -> Json:
        """A resource whose creation hangs in its first call, after it has made its thing."""
        properties = {"directory": str(self.things), "blocked_secs": seconds}
        return {"type": "Test::External", "properties": properties}

    def hang(self, name: str, **more: Json) -> str:
        """A stack that hangs; its path."""
        before = len(list(self.things.glob("*.external")))
        path = self.deployment.create(name, template(disk=self.hanging()), **more)
        wait_for(lambda: len(list(self.things.glob("*.external"))) > before, 60)
        return path

    def show_status(self, path: str) -> str:
        return str(self.deployment.show(path)["stack_status"])

    def query(self, sql: str, **values: Json) -> list[Json]:
        engine = sa.create_engine(self.deployment.database_url, poolclass=sa.NullPool)
        with engine.connect() as conn:
            return list(conn.execute(sa.text(sql), values).all())

    # -- what the operator does --------------------------------------------------------------------

    def manage(self, *arguments: str) -> Commands:
        """stoker-manage, in this process: starting one takes a second."""
        out = io.StringIO()
        err = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = manage.main(["--config-file", str(self.deployment.config), *arguments])
        cfg.CONF.reset()
        return Commands(code, out.getvalue() + err.getvalue())

    def inspect(self, stack_id: str) -> str:
        """Return the text of the command, without the name of our file in it."""
        output = self.manage("stack", "inspect", stack_id).output
        return output.replace(f" --config-file {self.deployment.config}", "")

    def causes(self, stack_id: str) -> set[str]:
        """The causes in the JSON output."""
        report = json.loads(self.manage("stack", "inspect", stack_id, "-f", "json").output)
        return {entry["cause"] for entry in [*report["general"], *report["tasks"]]}

    def run(self, command: str) -> None:
        """Run a command that was proposed."""
        program, *arguments = shlex.split(command)
        if program == "openstack":
            self.client.run(*arguments)
        elif program == "systemctl":
            assert arguments[0] == "restart"
            self.restart(arguments[1].replace("stoker-conductor@", "c-"))
        elif arguments[:2] == ["config", "validate"]:
            self.validate(arguments)
        else:
            assert program == "stoker-manage"
            done = self.manage(*arguments)
            assert done.code == 0 or (self.is_back and "nothing of it is unfinished" in done.output), done

    def validate(self, arguments: Sequence[str]) -> None:
        """The server that is unavailable is named; then it returns."""
        code, output = self.manage(*arguments)
        if self.away is None:
            assert (code, output.splitlines()[-1]) == (0, "nothing is wrong")
            return
        server, option = self.away
        wrong = [line for line in output.splitlines() if not line.endswith("answers")]
        assert code == 1
        assert len(wrong) == 2, output
        assert option in wrong[0]
        server.start()
        self.away = None
        self.is_back = True

    def other_api(self) -> str:
        """An API whose messages go to where nobody listens; its root."""
        deployment = self.deployment
        port = free_port()
        lines = deployment.config.read_text().splitlines()
        changed = [
            f"transport_url = {self.broker.create_vhost()}" if line.startswith("transport_url") else line
            for line in lines
        ]
        config = self.directory / f"other{port}.conf"
        config.write_text("\n".join(changed).replace(f"bind_port = {deployment.port}", f"bind_port = {port}"))
        command = [BIN / "stoker-api", "--config-file", config]
        process = Program(command, log=config.with_suffix(".log"), env=deployment.env)
        self._others.append(process)
        process.wait_for_port(port)
        return f"http://127.0.0.1:{port}"


@contextlib.contextmanager
def stage(directory: pathlib.Path) -> Iterator[Stage]:
    """The stage, with servers of its own."""
    for command in manage.COMMANDS.values():
        command.load()  # Now: a conductor that is unavailable is not waited for while commands are imported.
    with RabbitMQ() as broker, PostgreSQL() as postgres, Etcd() as etcd:
        staged = Stage(directory, broker, postgres, etcd)
        try:
            staged.whole()
            yield staged
        finally:
            staged.stop()


def indented(text: str) -> str:
    """For messages."""
    return textwrap.indent(text, "    ")
