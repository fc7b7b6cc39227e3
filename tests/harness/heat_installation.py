"""An empty Stoker, and a database of Heat's beside it, without services."""

import contextlib
import pathlib
import typing
from collections.abc import Callable, Iterator, Sequence

import sqlalchemy as sa
from harness.heat_answers import PROJECT, ScriptedHeat
from harness.heat_database import KEY, HeatRow, HeatStore
from oslo_config import cfg
from sqlalchemy.engine import Connection
from stoker.cli.commands.database import migrate
from stoker.cli.config import options
from stoker.cli.wiring.database import connect
from stoker.cli.wiring.heat_import import open_import
from stoker.cli.wiring.moves import open_export
from stoker.db import resources, stacks, usage
from stoker.db.engine import Database
from stoker.db.ids import StackId
from stoker.db.rows import Resource, Stack
from stoker.features.moves.heat.cipher import HeatCipher
from stoker.features.moves.heat.reader import HeatDatabase
from stoker.features.moves.heat.report import Report
from stoker.features.moves.heat.selection import Selection
from stoker.features.moves.inward.api_reader import HeatApi
from stoker.features.moves.inward.run import Options
from stoker.features.moves.outward.run import ExportOptions
from stoker.sealing.sealer import Sealer

Json = typing.Any
VERSION = {"heat_template_version": "2021-04-16"}
VALUE = {"type": "OS::Heat::Value", "properties": {"value": "v"}}


def template(named: Json, **sections: Json) -> Json:
    return {**VERSION, "resources": named, **sections}


def value_row(name: str = "v", value: Json = "v", **fields: Json) -> HeatRow:
    return HeatRow(name, f"stack-{name}", {"value": value}, **fields)


def only(report: Report) -> typing.Any:
    """The entry of the only stack in a report."""
    [entry] = report.stacks
    return entry


class Installation:
    """An empty Stoker, and a database of Heat's beside it."""

    def __init__(self, directory: pathlib.Path) -> None:
        self.config = directory / "stoker.conf"
        self.url = f"sqlite:///{directory}/stoker.sqlite"
        self.heat_url = f"sqlite:///{directory}/heat.sqlite"
        lines = ["[database]", f"connection = {self.url}", "[secrets]", f"key = {Sealer.generate_key()}"]
        lines += ["[api]", "auth_strategy = none"]
        self.config.write_text("\n".join(lines))
        cfg.CONF.reset()  # Another test of the process may have read a configuration.
        self.conf: cfg.ConfigOpts = options.load([], program="stoker-manage", files=[self.config])
        self.database: Database = connect(self.conf)
        migrate(self.database, expand=False, contract=False)
        self.heat = HeatStore(self.heat_url)

    def run(self, key: str | None = KEY, **settings: Json) -> Report:
        """Import from Heat's database."""
        selection = settings.pop("selection", Selection())
        heat = HeatDatabase(self.heat.engine, HeatCipher(key))
        heat.check()
        wrong = self.miscounted()  # A test may have changed rows by hand.
        with open_import(self.conf, heat, lambda done, total: None) as run:
            report = run.run(Options(selection, verifies=True, **settings))
        assert self.miscounted() == wrong
        return report

    def run_by_api(
        self, heat: ScriptedHeat, parameters: Json = None, *, names: Sequence[str] = (), dry_run: bool = False
    ) -> Report:
        """Import by Heat's API.

        :param names: names of the root stacks; none: all.
        """
        api = HeatApi(heat.get, PROJECT, parameters)
        with open_import(self.conf, api, lambda done, total: None) as run:
            return run.run(Options(Selection(stacks=names), verifies=True, dry_run=dry_run))

    def export(self, **settings: Json) -> Report:
        """Export into Heat's database."""
        selection = settings.pop("selection", Selection())
        cipher = HeatCipher(KEY)
        heat = HeatDatabase(self.heat.engine, cipher)
        with open_export(self.conf, heat, cipher, lambda done, total: None) as run:
            return run.run(ExportOptions(selection, **settings))

    def change(self, function: Callable[[Connection], object]) -> None:
        """Change rows by statements that leave the counters of quotas alone, then count these again."""
        self.database.write(function)
        # In a transaction of its own: what a function counts is added at the end of its transaction.
        for project_id in self.database.read(lambda conn: usage.projects(conn, limit=500)):
            self.database.write(lambda conn, key=project_id: usage.recount(conn, key))  # type: ignore[misc]

    def stack(self, stack_id: str) -> Stack:
        return self.database.read(lambda conn: stacks.get(conn, StackId(stack_id)))

    def miscounted(self) -> list[usage.Recount]:
        """Return the counters of quotas that are not what the rows say."""
        ids = self.database.read(lambda conn: usage.projects(conn, limit=500))
        counted = [self.database.write(lambda conn, key=key: usage.differences(conn, key)) for key in ids]  # type: ignore[misc]
        return [wrong for project in counted for wrong in project]

    def rows(self, stack_id: str) -> dict[str, Resource]:
        rows = self.database.read(lambda conn: resources.of_stack(conn, StackId(stack_id)))
        return {row.name: row for row in rows}

    def text(self) -> str:
        """Everything that Stoker has stored."""
        with sa.create_engine(self.url).connect() as conn:
            tables = sa.inspect(conn).get_table_names()
            return "".join(str(list(conn.execute(sa.text(f"SELECT * FROM {name}")))) for name in tables)


@contextlib.contextmanager
def installed(directory: pathlib.Path) -> Iterator[Installation]:
    """An installation in a folder, as long as the context."""
    installation = Installation(directory)
    with contextlib.closing(installation.database):
        yield installation
    installation.conf.reset()
