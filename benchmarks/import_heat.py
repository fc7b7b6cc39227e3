"""How fast stacks of Heat's are moved: `stoker-manage import-heat` from MariaDB into PostgreSQL.

Usage:
    python benchmarks/import_heat.py        start MariaDB and PostgreSQL, and make a database of Heat's
    options: --stacks 10000   --resources 10   --events 20   --nested 0

Each stack has a network, ports that refer to it and a server that has them, with attributes that outputs
refer to, and a hidden parameter.  With --nested N each has N nested stacks of that kind, too.  Printed are
the seconds of a dry run, of one with --verify and of the import, stacks/s, the most memory, and the disk
of both databases.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import typing
import uuid
from collections.abc import Iterator, Mapping

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import sqlalchemy as sa
from harness.heat_database import CREATED, KEY, HeatStore, encrypted
from harness.mariadb import MariaDB
from harness.postgresql import PostgreSQL
from harness.programs import BIN
from stoker.features.moves.heat import tables
from stoker.sealing.sealer import Sealer

TARGET = 600.0
"""Seconds for 10,000 stacks of ten resources on two cores."""
BATCH = 200
"""Stacks that are stored together."""
MEGABYTE = 1_000_000
Json = typing.Any
Rows = dict[sa.Table, list[dict[str, Json]]]


def template(ports: int) -> Json:
    """A network, ports and a server."""
    network = {"type": "OS::Neutron::Net", "properties": {"name": {"get_param": "OS::stack_name"}}}
    port = {"type": "OS::Neutron::Port", "properties": {"network": {"get_resource": "net"}}}
    server = {
        "type": "OS::Nova::Server",
        "properties": {
            "image": "cirros",
            "flavor": "m1.tiny",
            "admin_pass": {"get_param": "password"},
            "networks": [{"port": {"get_resource": f"port{number}"}} for number in range(ports)],
        },
    }
    return {
        "heat_template_version": "2021-04-16",
        "parameters": {"password": {"type": "string", "hidden": True}},
        "resources": {"net": network, **{f"port{n}": port for n in range(ports)}, "server": server},
        "outputs": {"address": {"value": {"get_attr": ["server", "first_address"]}}},
    }


class Stacks:
    """Makes rows of stacks.

    :param resources: resources of each stack.
    :param events: events of each stack.
    :param nested: nested stacks of each root stack.
    """

    def __init__(self, resources: int, events: int, nested: int) -> None:
        self._ports = resources - 2
        self._events = events
        self._nested = nested
        self._template = template(self._ports)
        self._ids = 0
        self._password = encrypted("a password of the benchmark")

    def rows(self, first: int, count: int) -> Rows:
        """The rows of some stacks."""
        rows: Rows = {}
        for number in range(first, first + count):
            for table, row in self._tree(number):
                rows.setdefault(table, []).append(row)
        return rows

    def _tree(self, number: int) -> Iterator[tuple[sa.Table, dict[str, Json]]]:
        root_id = str(uuid.uuid4())
        children = {f"child{index}": str(uuid.uuid4()) for index in range(self._nested)}
        yield from self._stack(number, f"stack{number}", root_id, children=children)
        for name, child_id in children.items():
            parent = {"owner_id": root_id, "parent_resource_name": name}
            yield from self._stack(number, f"stack{number}-{name}", child_id, parent=parent)

    def _stack(
        self,
        number: int,
        name: str,
        stack_id: str,
        *,
        children: Mapping[str, str] | None = None,
        parent: Mapping[str, str] | None = None,
    ) -> Iterator[tuple[sa.Table, dict[str, Json]]]:
        template_id = self._next()
        environment = {"parameters": {"password": self._password}, "encrypted_param_names": ["password"]}
        child = {"type": "child.yaml", "properties": {"password": {"get_param": "password"}}}
        resources = {**self._template["resources"], **dict.fromkeys(children or (), child)}
        files = {"child.yaml": json.dumps(self._template)} if children else {}
        yield tables.raw_template_files, {"id": template_id, "files": files}
        yield (
            tables.raw_template,
            {
                "id": template_id,
                "template": {**self._template, "resources": resources},
                "environment": environment,
                "files_id": template_id,
            },
        )
        yield (
            tables.stack,
            {
                "id": stack_id,
                "name": name,
                "created_at": CREATED,
                "action": "CREATE",
                "status": "COMPLETE",
                "status_reason": "Stack CREATE completed successfully",
                "raw_template_id": template_id,
                "tenant": f"project{number % 100}",
                "username": "alice",
                "disable_rollback": True,
                "owner_id": None,
                "parent_resource_name": None,
                **(parent or {}),
            },
        )
        network = str(uuid.uuid4())
        ports = {f"port{index}": str(uuid.uuid4()) for index in range(self._ports)}
        values: dict[str, tuple[str, Json]] = {
            "net": (network, {"name": name}),
            **{port: (key, {"network": network}) for port, key in ports.items()},
            "server": (
                str(uuid.uuid4()),
                {
                    "image": "cirros",
                    "flavor": "m1.tiny",
                    "admin_pass": "a password of the benchmark",
                    "networks": [{"port": key} for key in ports.values()],
                },
            ),
        }
        for child_name, child_id in (children or {}).items():
            values |= {child_name: (child_id, {"password": "a password of the benchmark"})}
        for resource_name, (physical_id, properties) in values.items():
            yield from self._resource(stack_id, template_id, resource_name, physical_id, properties)
        for index in range(self._events):
            yield (
                tables.event,
                {
                    "id": self._next(),
                    "uuid": str(uuid.uuid4()),
                    "stack_id": stack_id,
                    "created_at": CREATED + index,
                    "resource_action": "CREATE",
                    "resource_status": "COMPLETE",
                    "resource_name": "net",
                    "physical_resource_id": network,
                    "resource_status_reason": "state changed",
                    "resource_type": "OS::Neutron::Net",
                },
            )

    def _resource(
        self, stack_id: str, template_id: int, name: str, physical_id: str, properties: Json
    ) -> Iterator[tuple[sa.Table, dict[str, Json]]]:
        properties_id = self._next()
        yield tables.resource_properties_data, {"id": properties_id, "data": properties, "encrypted": False}
        attributes_id = None
        if name == "server":
            attributes_id = self._next()
            attributes = {"first_address": "10.0.0.1"}
            yield (
                tables.resource_properties_data,
                {"id": attributes_id, "data": attributes, "encrypted": False},
            )
        yield (
            tables.resource,
            {
                "id": self._next(),
                "uuid": str(uuid.uuid4()),
                "name": name,
                "physical_id": physical_id,
                "metadata": {},
                "created_at": CREATED,
                "action": "CREATE",
                "status": "COMPLETE",
                "status_reason": "state changed",
                "stack_id": stack_id,
                "rsrc_prop_data_id": properties_id,
                "attr_data_id": attributes_id,
                "current_template_id": template_id,
            },
        )

    def _next(self) -> int:
        self._ids += 1
        return self._ids


def fill(url: str, stacks: Stacks, count: int) -> None:
    """Make a database of Heat's with so many stacks."""
    store = HeatStore(url)
    for first in range(0, count, BATCH):
        rows = stacks.rows(first, min(BATCH, count - first))
        with store.engine.begin() as conn:
            for table in tables.metadata.sorted_tables:
                if table in rows:
                    conn.execute(sa.insert(table), rows[table])
    store.engine.dispose()


def run(config: pathlib.Path, *arguments: str) -> tuple[float, int]:
    """Run a command of the operator's; the seconds that it took, and the most bytes of memory that it had."""
    began = time.monotonic()
    command = [BIN / "stoker-manage", "--config-file", config, *arguments]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        # The usage of this process, and not that of all processes that have ended.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = code = os.waitstatus_to_exitcode(status)
        if code:
            output.seek(0)
            sys.exit(output.read()[-4000:].decode())
    return time.monotonic() - began, usage.ru_maxrss * 1024


def disk(url: str) -> int:
    """The bytes that a database takes, with its indexes."""
    engine = sa.create_engine(url)
    queries = {
        "postgresql": "SELECT pg_database_size(current_database())",
        "mysql": "SELECT SUM(data_length + index_length) FROM information_schema.tables"
        " WHERE table_schema = DATABASE()",
    }
    with engine.connect() as conn:
        if engine.name == "mysql":
            for table in tables.metadata.sorted_tables:
                conn.exec_driver_sql(f"ANALYZE TABLE {table.name}").close()
        size = int(conn.exec_driver_sql(queries[engine.name]).scalar_one())
    engine.dispose()
    return size


def main() -> None:
    """Run it and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stacks", type=int, default=10_000)
    parser.add_argument("--resources", type=int, default=10)
    parser.add_argument("--events", type=int, default=20)
    parser.add_argument("--nested", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, MariaDB() as mariadb, PostgreSQL() as postgresql:
        folder = pathlib.Path(name)
        heat_url = mariadb.create_database()
        fill(heat_url, Stacks(options.resources, options.events, options.nested), options.stacks)
        config = folder / "stoker.conf"
        stoker_url = postgresql.create_database()
        database = f"[database]\nconnection = {stoker_url}\n"
        config.write_text(
            f"{database}[secrets]\nkey = {Sealer.generate_key()}\n[api]\nauth_strategy = none\n"
        )
        key = folder / "key"
        key.write_text(KEY)
        run(config, "db", "sync")
        command = ["import-heat", "--database", heat_url, "--encryption-key-file", str(key)]
        stacks = options.stacks * (1 + options.nested)
        empty = disk(stoker_url)
        for words in (["--dry-run"], ["--dry-run", "--verify"], []):
            took, memory = run(config, *command, *words)
            title = " ".join(words) or "import"
            rate = f"{stacks} stacks in {took:.1f} s, {stacks / took:.0f} stacks/s"
            print(f"{title}: {rate}, {memory / MEGABYTE:.0f} MB of memory", flush=True)
        taken = disk(stoker_url) - empty
        print(f"disk: {disk(heat_url) / MEGABYTE:.1f} MB at Heat, {taken / MEGABYTE:.1f} MB here")
    limit = TARGET * stacks / 10_000 + 10.0
    if took > limit:
        sys.exit(f"more than {limit:.0f} s")


if __name__ == "__main__":
    main()
