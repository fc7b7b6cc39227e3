"""Wrong configurations: each program says which option is wrong and what would be right, and ends."""

import contextlib
import json
import pathlib
import sqlite3
import subprocess
import time

import pytest
import sqlalchemy as sa
from harness import programs
from harness.ports import free_port
from harness.programs import BIN
from harness.rabbitmq import RabbitMQ
from services.db.rows import a_stack, store
from stoker.db.engine import Database
from stoker.db.schema import revisions, upgrade
from stoker.sealing.sealer import Sealer

KEY = f"[secrets]\nkey = {Sealer.generate_key()}\n"
KEYSTONE = "[api]\nauth_strategy = keystone\n[keystone_authtoken]\n"
TABLE = [
    ("[secrets]\n", "[secrets] key"),
    ("[secrets]\nkey = short\n", "[secrets] key"),
    (KEY + "[database]\nconnection = nonsense\n", "[database] connection"),
    (KEY + "[database]\nconnection = oracle://x/y\n", "[database] connection"),
    (KEY + "[database]\nconnection = postgresql+psycopg://u:secret@127.0.0.1:1/x\n", "[database] connection"),
    (KEY + "[database]\nconnection = sqlite:////no/such/folder/x.sqlite\n", "[database] connection"),
    (KEY + "[database]\npool_size = many\n", "pool_size"),
    (KEY + "[database]\npool_size = 0\n", "pool_size"),
    (KEY + "[stacks]\nshard_count = 7\n", "Set shard_count to 4096"),
    (KEY + "[DEFAULT]\ntransport_url = carrier-pigeon://x\n", "transport_url"),
    (KEY + "[api]\nbind_port = 99999\n", "bind_port"),
    (KEY + "[oslo_messaging_rabbit]\nuse_queue_manager = true\n", "[oslo_concurrency] lock_path is missing"),
    (KEY + "[upgrade_levels]\nconductor = 0.7\n", "Valid values are [auto, 1.0], but found '0.7'"),
    ("no section\n", "stoker.conf"),
    (KEY + "[api]\nauth_strategy = keystone\n", "[keystone_authtoken] auth_type is missing"),
    (KEY + "[api]\nauth_strategy = password\n", "auth_strategy"),
    (KEY + KEYSTONE + "auth_type = pigeon\n", "[keystone_authtoken]"),
    (KEY + KEYSTONE + "auth_type = password\n", "[keystone_authtoken]"),
    (
        KEY + KEYSTONE + "auth_type = password\nauth_url = http://127.0.0.1:1\n"
        "[oslo_policy]\npolicy_file = {folder}/wrong.yaml\n",
        "[oslo_policy] policy_file",
    ),
]
CONDUCTOR_ONLY = [
    (KEY + "[coordination]\nheartbeat = 5\ntimeout = 6\n", "[coordination]"),
    (KEY + "[coordination]\nbackend_url = nonsense://x\n", "[coordination] backend_url"),
    (KEY + "[coordination]\npoll = 100\n", "[coordination]"),
    (KEY + "[metrics]\nport = 99999\n", "port"),
]
USABLE = (
    "[DEFAULT]\ntransport_url = kombu+memory://\n[coordination]\nbackend_url = file://{folder}/group\n"
    "[api]\nauth_strategy = none\nbind_port = {port}\n"
)


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database that is set up."""
    folder = tmp_path_factory.mktemp("database")
    text = f"[database]\nconnection = sqlite:///{folder}/s.sqlite\n"
    (folder / "stoker.conf").write_text(text)
    assert run("stoker-manage", folder, "db", "sync").returncode == 0
    return text


def run(
    program: str, folder: pathlib.Path, *arguments: str, real: bool = False
) -> subprocess.CompletedProcess[str]:
    """:param real: start it for real, not by the fork server."""
    command = [BIN / program, "--config-file", folder / "stoker.conf", *arguments]
    if real:
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return programs.run(command)


def write(folder: pathlib.Path, text: str, database: str) -> None:
    """Write the configuration: wrong lines after right ones."""
    usable = USABLE.format(folder=folder, port=free_port())
    (folder / "wrong.yaml").write_text("'stacks:create': 'rule:no_such_rule'\n")
    (folder / "stoker.conf").write_text(usable + database + text.replace("{folder}", str(folder)))


@pytest.mark.parametrize(
    ("program", "text", "message"),
    [
        pytest.param("stoker-api", *TABLE[0], marks=pytest.mark.commit),
        *(("stoker-api", *row) for row in TABLE[1:]),
        pytest.param("stoker-conductor", *CONDUCTOR_ONLY[0], marks=pytest.mark.commit),
        *(("stoker-conductor", *row) for row in CONDUCTOR_ONLY[1:]),
    ],
)
def test_a_daemon_names_errors_of_its_configuration(
    tmp_path: pathlib.Path, database: str, program: str, text: str, message: str
) -> None:
    write(tmp_path, text, database)
    done = run(program, tmp_path, real=(text, message) in (TABLE[0], CONDUCTOR_ONLY[0]))
    assert done.returncode == 1, done.stderr
    assert done.stderr.startswith(f"{program}: cannot start: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "secret@" not in done.stderr


def test_an_empty_database_is_reported_with_the_command_that_sets_it_up(
    tmp_path: pathlib.Path,
) -> None:
    write(tmp_path, KEY, f"[database]\nconnection = sqlite:///{tmp_path}/new.sqlite\n")
    done = run("stoker-api", tmp_path)
    assert done.returncode == 1
    assert "was never set up" in done.stderr
    assert "run `stoker-manage db sync`" in done.stderr
    assert run("stoker-status", tmp_path, "upgrade", "check", real=True).returncode == 2
    assert run("stoker-manage", tmp_path, "ring", "show").returncode == 1
    assert run("stoker-manage", tmp_path, "db", "sync", real=True).returncode == 0
    checked = run("stoker-status", tmp_path, "upgrade", "check")
    assert checked.returncode == 0, checked.stdout
    assert run("stoker-manage", tmp_path, "ring", "show").returncode == 0


@pytest.mark.parametrize("program", ["stoker-api", "stoker-conductor"])
def test_a_database_that_stays_away_between_two_transactions_of_the_start_is_one_line(
    tmp_path: pathlib.Path, program: str
) -> None:
    path = tmp_path / "own.sqlite"
    settings = f"[database]\nconnection = sqlite:///{path}\nbusy_timeout = 0.1\nretry_time = 0.1\n"
    write(tmp_path, KEY, settings)
    assert run("stoker-manage", tmp_path, "db", "sync").returncode == 0
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # It can be read, so the first check of the start is passed.
        done = run(program, tmp_path)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if line.startswith(f"{program}: cannot start: ")]
    assert len(set(lines)) == 1, done.stderr  # one for each worker process
    assert "[database] connection: the database cannot be used: " in lines[0]
    assert "database is locked" in lines[0]
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_an_error(tmp_path: pathlib.Path) -> None:
    for program, arguments in (("stoker-api", []), ("stoker-manage", ["ring", "show"])):
        done = run(program, tmp_path, *arguments, real=True)
        assert done.returncode == 1
        assert "stoker.conf" in done.stderr
        assert "Traceback" not in done.stderr


PROGRAMS = [
    ("stoker-api", []),
    ("stoker-conductor", []),
    ("stoker-manage", ["ring", "show"]),
    ("stoker-manage", ["db", "sync"]),
    ("stoker-manage", ["config", "validate"]),
    ("stoker-status", ["upgrade", "check", "--json"]),
]


@pytest.mark.parametrize(("program", "arguments"), PROGRAMS)
def test_without_a_configuration_the_searched_places_are_named(
    tmp_path: pathlib.Path, program: str, arguments: list[str]
) -> None:
    if pathlib.Path("/etc/stoker").exists() or pathlib.Path("/etc/stoker.conf").exists():
        pytest.skip("a Stoker is installed on this machine, with its configuration")
    env = {"HOME": str(tmp_path), "STOKER_CONFIG_FILE": ""}
    done = programs.run([BIN / program, *arguments], env=env)
    output = done.stdout + done.stderr
    assert done.returncode in (1, 2), output
    assert "no configuration was found: searched for stoker.conf or stoker-" in output
    assert f"{tmp_path}/.stoker, {tmp_path}, /etc/stoker, /etc; name another file by --config-file" in output
    assert "STOKER_CONFIG_FILE" in output
    assert "sqlite" not in output.lower()


def test_configuration_files_are_found_in_the_documented_folders(tmp_path: pathlib.Path) -> None:
    (tmp_path / ".stoker").mkdir()
    for place in (tmp_path / ".stoker", tmp_path):
        file = place / "stoker.conf"
        file.write_text(f"[database]\nconnection = sqlite:///{tmp_path}/s.sqlite\n")
        done = programs.run([BIN / "stoker-manage", "db", "version"], env={"HOME": str(tmp_path)})
        assert (done.returncode, done.stdout) == (0, "never migrated\n"), done.stderr
        file.unlink()


@pytest.mark.commit
@pytest.mark.parametrize(
    ("program", "arguments"), [*PROGRAMS, ("stoker", ["serve", "--data-dir", "{tmp}/data"])]
)
def test_every_program_reads_the_file_that_the_environment_names(
    tmp_path: pathlib.Path, program: str, arguments: list[str]
) -> None:
    (tmp_path / "other.conf").write_text("[database]\npool_size = many\n")
    env = {"STOKER_CONFIG_FILE": str(tmp_path / "other.conf")}
    command = [BIN / program, *(argument.format(tmp=tmp_path) for argument in arguments)]
    done = programs.run(command, env=env)
    assert done.returncode in (1, 2)
    assert "pool_size" in done.stdout + done.stderr
    assert "many" in done.stdout + done.stderr


def test_a_file_on_the_command_line_has_precedence_over_the_environment(
    tmp_path: pathlib.Path, database: str
) -> None:
    (tmp_path / "other.conf").write_text("[database]\npool_size = many\n")
    (tmp_path / "stoker.conf").write_text(database)
    env = {"STOKER_CONFIG_FILE": str(tmp_path / "other.conf")}
    command = [BIN / "stoker-manage", "--config-file", tmp_path / "stoker.conf", "db", "version"]
    assert programs.run(command, env=env).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ring", "show", "--stack", "nothing"], "there is no stack nothing, by id or by name"),
        (["ring", "drain", "nobody"], "nobody"),
        (["ring", "plan", "--leave", "nobody"], "nobody is not on the ring"),
        (["ring", "plan", "--join", "a=heavy"], "must be a number"),
        (["ring", "rebalance", "--wait", "--timeout", "0.3"], "no conductor is alive"),
        (["stack", "inspect", "nothing"], "there is no stack nothing, by id or by name"),
        (["stack", "inspect", "nothing", "--limit", "0"], "--limit must be 1 or more"),
        (["stack", "retry", "nothing", "--project", "p"], "there is no stack nothing of project p"),
        (["stack", "fail", "nothing"], "there is no stack nothing"),
        (["service", "clean", "--silent", "1"], "--silent must be 60 or more"),
        (["db", "purge", "--batch", "0"], "--batch must be between 1 and 500, not 0"),
    ],
)
def test_a_failing_admin_command_names_the_reason(
    tmp_path: pathlib.Path, database: str, arguments: list[str], message: str
) -> None:
    write(tmp_path, KEY, database)
    done = run("stoker-manage", tmp_path, *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.commit
def test_the_whole_configuration_is_validated_at_once(tmp_path: pathlib.Path, database: str) -> None:
    write(tmp_path, KEY + "[conductor]\nthread = 4\nweight = heavy\n", database)
    done = run("stoker-manage", tmp_path, "config", "validate")
    assert done.returncode == 1, done.stderr
    file = tmp_path / "stoker.conf"
    assert f'{file}: [conductor] thread: there is no such option; did you mean "threads"?' in done.stdout
    assert f"{file}: [conductor] weight: " in done.stdout
    assert done.stdout.endswith("2 wrong\n")
    write(tmp_path, KEY, database)
    done = run("stoker-manage", tmp_path, "config", "validate", "--connect")
    assert done.returncode == 0, done.stdout + done.stderr
    answers = ["database: answers", "message bus: answers", "coordination backend: answers"]
    assert done.stdout.splitlines() == [*answers, "nothing is wrong"]


def test_a_broker_that_refuses_a_conductor_is_one_line(
    tmp_path: pathlib.Path, database: str, rabbitmq: RabbitMQ
) -> None:
    write(tmp_path, f"{KEY}[DEFAULT]\ntransport_url = {rabbitmq.url_of('no-such-vhost')}\n", database)
    done = run("stoker-conductor", tmp_path)
    assert done.returncode == 1
    assert "stoker-conductor: cannot start: transport_url: the message bus refuses: " in done.stderr
    assert "vhost no-such-vhost not found" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_servers_that_do_not_answer_are_named(tmp_path: pathlib.Path, database: str) -> None:
    away = (
        "[DEFAULT]\ntransport_url = rabbit://u:secret@127.0.0.1:1/\n"
        "[coordination]\nbackend_url = etcd3+http://127.0.0.1:1\n"
    )
    write(tmp_path, KEY + away, "[database]\nconnection = postgresql+psycopg://u:secret@127.0.0.1:1/x\n")
    done = run("stoker-manage", tmp_path, "config", "validate", "--connect")
    assert done.returncode == 1
    assert "database: [database] connection: " in done.stdout
    assert "message bus: transport_url: " in done.stdout
    assert "coordination backend: [coordination] backend_url: " in done.stdout
    assert "secret@" not in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    checked = run("stoker-status", tmp_path, "upgrade", "check", "--json")
    assert checked.returncode == 2
    results = {check["check"]: check["result"] for check in json.loads(checked.stdout)["checks"]}
    assert results == {
        "configuration": 0,
        "database and its schema": 2,
        "message bus": 2,
        "coordination backend": 2,
        "accounts at Keystone and other servers": 0,
        "sealing keys": 2,
        "conductors that run": 2,
        "system calls of expressions": 0,
    }


def test_an_upgrade_is_checked_against_what_is_stored_and_what_runs(
    tmp_path: pathlib.Path, database: str
) -> None:
    write(tmp_path, KEY, database)
    url = database.partition("connection = ")[2].strip()
    sealed = Sealer([Sealer.generate_key()]).of_installation("x").seal("secret")
    value = json.dumps({"$fn": "sealed", "args": [sealed]}, separators=(",", ":"))
    row = "INSERT INTO setting (name, value) VALUES ('x', ?)"
    conductor = (
        "INSERT INTO conductor (host, incarnation, state, wanted, wanted_by, wanted_reason, weight, "
        "shards_owned, ring_version, threads, threads_busy, threads_written_off, rpc_version, started_at, "
        "heartbeat_at, schema_number, clock_ahead) VALUES "
        "('old', 'old/1', 'active', 'active', '', '', 1, 0, '', 1, 0, 0, '0.9', 0, ?, 1, 0)"
    )
    with contextlib.closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as conn:
        conn.execute(row, (value,))
        conn.execute(conductor, (time.time(),))
        conn.commit()
        checked = run("stoker-status", tmp_path, "upgrade", "check")
        conn.execute("DELETE FROM setting WHERE name = 'x'")
        conn.execute("DELETE FROM conductor")
        conn.commit()
    report = " ".join(checked.stdout.replace("|", " ").split())
    assert checked.returncode == 2
    assert f"key {sealed.partition('.')[0]} is not among [secrets] key" in report
    assert "old speaks 0.9: stop them first" in report
    assert run("stoker-status", tmp_path, "upgrade", "check").returncode == 0


def test_deleted_stacks_are_purged_by_hand(tmp_path: pathlib.Path, database: str) -> None:
    write(tmp_path, KEY, database)
    deleted = {"action": "DELETE", "status": "COMPLETE", "live_name": None}
    opened = Database(database.partition("connection = ")[2].strip())
    for hours in (1, 30, 50):
        store(opened, a_stack(**deleted, deleted_at=time.time() - 3600 * hours))
    opened.close()
    done = run("stoker-manage", tmp_path, "db", "purge", "--older-than", "1d", "--batch", "1")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("removed: 2 deleted stacks, 0 old events of others, ")
    wrong = run("stoker-manage", tmp_path, "db", "purge", "--older-than", "soon")
    assert (wrong.returncode, "soon is not an age" in wrong.stderr) == (1, True)


@pytest.mark.parametrize(
    ("revision", "status", "message"),
    [
        (revisions.NEWEST, 0, ""),
        (f"{revisions.NUMBER + 1:04}_expand", 1, "of the next release: upgrade all daemons to it"),
        (f"{revisions.NUMBER + 1:04}_contract", 2, "use the release that has migrated it"),
    ],
)
def test_the_upgrade_check_names_the_next_step(
    tmp_path: pathlib.Path, revision: str, status: int, message: str
) -> None:
    write(tmp_path, KEY, f"[database]\nconnection = sqlite:///{tmp_path}/new.sqlite\n")
    database = Database(f"sqlite:///{tmp_path}/new.sqlite")
    upgrade.sync(database)
    stamp = sa.text("UPDATE alembic_version SET version_num = :revision")
    database.write(lambda conn: conn.execute(stamp, {"revision": revision}))
    database.close()
    checked = run("stoker-status", tmp_path, "upgrade", "check")
    assert checked.returncode == status
    assert message in " ".join(checked.stdout.replace("|", " ").split())


def test_a_database_of_a_newer_release_is_not_changed(tmp_path: pathlib.Path, database: str) -> None:
    write(tmp_path, KEY, f"[database]\nconnection = sqlite:///{tmp_path}/new.sqlite\n")
    assert run("stoker-manage", tmp_path, "db", "sync", "--expand").returncode == 0
    opened = Database(f"sqlite:///{tmp_path}/new.sqlite")
    newer = f"{revisions.NUMBER + 2:04}_expand"  # The next one's code may work beside this release's.
    opened.write(lambda conn: conn.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{newer}'"))
    opened.close()
    for arguments in ([], ["--expand"], ["--contract"]):
        done = run("stoker-manage", tmp_path, "db", "sync", *arguments)
        assert done.returncode == 1
        message = f"the database is at {newer}, this release knows {revisions.NEWEST} at the most: use the"
        assert message in done.stderr
        assert "Traceback" not in done.stderr
    version = run("stoker-manage", tmp_path, "db", "version")
    assert (version.stdout, version.stderr) == (f"{newer}\n", "it is too new for this code\n")
    both = run("stoker-manage", tmp_path, "db", "sync", "--expand", "--contract")
    assert both.returncode == 2
    assert "not allowed with argument" in both.stderr
