"""The watch of statements sees what reaches a project's things by an id alone, and what does not."""

import pytest
import sqlalchemy as sa
from harness.owned_statements import EXCEPTIONS, OWNERS, PUBLIC, ROOT, unowned
from stoker.db.bulk import OneOf
from stoker.db.schema import tables

STACK = tables.stack.c
CONFIG = tables.software_config.c
DEPLOYMENT = tables.software_deployment.c
RESOURCE = tables.resource.c
PARENT = tables.resource.alias("parent")


@pytest.mark.parametrize(
    ("statement", "columns"),
    [
        (sa.select(tables.stack).where(STACK.id == "x"), ["stack.id"]),
        (sa.select(tables.stack).where(sa.literal("x") == STACK.id), ["stack.id"]),
        (sa.select(tables.stack).where(STACK.id.in_(["x", "y"])), ["stack.id"]),
        (sa.select(tables.stack).where(OneOf(STACK.id)), ["stack.id"]),
        (sa.update(tables.stack).where(STACK.id == "x").values(reason="r"), ["stack.id"]),
        (sa.delete(tables.software_config).where(CONFIG.id == "x"), ["software_config.id"]),
        (
            sa.select(DEPLOYMENT.id).join(tables.software_config, CONFIG.id == DEPLOYMENT.config_id)
            .where(CONFIG.id == "x"),
            ["software_config.id"],
        ),
        (sa.select(PARENT).where(PARENT.c.physical_id == "x"), ["resource.physical_id"]),
        (
            sa.select(sa.exists().where(DEPLOYMENT.config_id == "x", DEPLOYMENT.status == "y")),
            ["software_deployment.config_id"],
        ),
        (sa.select(tables.stack).where(STACK.id == "x", STACK.project_id == "p"), []),
        (sa.select(tables.stack).where(STACK.id == "x", STACK.parent_resource_id == 1), []),
        (sa.delete(tables.software_config).where(CONFIG.id == "x", CONFIG.resource_id == 5), []),
        (
            sa.select(tables.stack).join(tables.resource, RESOURCE.id == STACK.parent_resource_id)
            .where(STACK.id == "x", RESOURCE.stack_id == "y"),
            [],
        ),
        (
            sa.select(tables.stack).join(tables.resource, RESOURCE.id == STACK.parent_resource_id)
            .where(STACK.id == "x", RESOURCE.name == "y"),
            ["stack.id"],
        ),
        (
            sa.select(DEPLOYMENT.id).join(tables.resource, RESOURCE.id == DEPLOYMENT.resource_id)
            .join(tables.stack, STACK.id == RESOURCE.stack_id)
            .where(DEPLOYMENT.id == "x", STACK.project_id == "p"),
            [],
        ),
        (sa.select(tables.event).where(tables.event.c.stack_id == "x"), []),
        (sa.select(tables.task).where(tables.task.c.id == 1), []),
    ],
)  # fmt: skip
def test_an_id_alone_is_seen(statement: sa.Executable, columns: list[str]) -> None:
    assert list(unowned(statement)) == columns  # type: ignore[arg-type]


def test_the_columns_are_those_of_the_tables() -> None:
    for columns in (PUBLIC, OWNERS):
        for name, names in columns.items():
            assert names <= set(getattr(tables, name).c.keys()), name


def test_each_exception_is_a_function_that_exists() -> None:
    for place in EXCEPTIONS:
        path, _, function = place.partition(":")
        assert (ROOT / path).exists(), place
        assert not function or f"def {function}(" in (ROOT / path).read_text(), place


@pytest.mark.parametrize("table", ["stack", "snapshot", "software_config", "software_deployment", "event"])
def test_a_table_with_things_of_a_project_is_watched(table: str) -> None:
    assert PUBLIC[table]
    assert OWNERS[table]
