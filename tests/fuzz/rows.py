"""Stored rows, damaged or of another version, as the API reads them and as a conductor works on them."""

import json
import pathlib
import typing
from collections.abc import Sequence

import sqlalchemy as sa
from fuzz.installation import CHILD, OTHER, PROJECT, Installation, Renewed
from fuzz.laws import Broken, check_text
from fuzz.mutation import EXPRESSIONS, MOST_BYTES, SCALARS, Choices
from hypothesis import strategies as st
from oslo_db.exception import DBError
from simulation.console import Caller
from stoker.db.schema import tables

Json = typing.Any
COLUMNS: dict[str, Sequence[str]] = {
    "stack": (
        *("action", "status", "failure_cause", "parameters", "previous", "parameter_view", "outputs"),
        *("template_id", "environment_id"),
    ),
    "resource": (
        *("action", "status", "plugin", "physical_id", "reference_id", "definition", "properties"),
        *("attributes", "metadata", "data", "requires", "progress", "key"),
    ),
    "task": (
        *("kind", "state", "definition", "standing", "restricted", "inputs", "successors", "waits_on"),
        *("hooks", "losses"),
    ),
    "content": ("body",),
    "event": ("action", "status", "physical_id"),
    "traversal": ("state", "action", "failure_cause", "deadline_policy"),
    "snapshot": ("action", "status", "goal", "tags"),
}
"""Columns whose values have a shape, or may be missing, by table."""
WORDS = ("", "NEXT", "COMPLETE", "FAILED", "IN_PROGRESS", "DELETE", "running", "ready", "x" * 9, "resource:x")
TEXTS = ("", "{", "[", "[1", '"', "nul", "NaN", "\ufeff{}")
ACTIONS: dict[str, Json] = {
    "none": None,
    "check": ("POST", "/actions", {"check": None}),
    "suspend": ("POST", "/actions", {"suspend": None}),
    "snapshot": ("POST", "/snapshots", {}),
    "delete": ("DELETE", "", None),
    "update": (
        *("PUT", ""),
        {
            "template": {
                "heat_template_version": "2021-04-16",
                "resources": {
                    "r": {"type": "OS::Heat::TestResource", "properties": {"value": "new"}},
                    "child": {"type": "child.yaml"},
                    "more": {"type": "OS::Heat::RandomString"},
                },
            },
            "files": {"child.yaml": CHILD},
        },
    ),
}
"""Requests that are accepted before the rows are damaged."""
READS = (
    *("", "?resolve_outputs=false", "/resources", "/resources?nested_depth=3", "/resources/r", "/events"),
    *("/template", "/environment", "/files", "/outputs", "/snapshots", "/inspect", "/graph", "/drift"),
    *("/export", "/resources/r/metadata", "/outputs/o"),
)
WRITES = (("POST", "/actions", {"check": None}), ("DELETE", "", None))
SIMPLE = {"heat_template_version": "2021-04-16", "resources": {"a": {"type": "OS::Heat::RandomString"}}}
WITHIN = 120.0
"""Seconds of the simulation in which the stack of another project is made."""


class Rows:
    """The subject.

    :param folder: an empty folder.
    """

    name = "rows"
    cost = 20

    def __init__(self, folder: pathlib.Path) -> None:
        self._renewed = Renewed(folder)
        self._count = 0

    def inputs(self) -> st.SearchStrategy[Json]:
        """Return an accepted request, and the columns that are damaged meanwhile."""
        return st.binary(min_size=3, max_size=MOST_BYTES).map(self.of_bytes)

    def of_bytes(self, data: bytes) -> Json:
        """Return the input that some bytes choose."""
        choices = Choices(data)
        action = choices.one(list(ACTIONS))
        edits = []
        while choices.more and len(edits) < 3:
            table = choices.one(list(COLUMNS))
            column = choices.one(COLUMNS[table])
            edits.append(
                {"table": table, "column": column, "row": choices.below(8), "value": _value(choices)}
            )
        return {"action": action, "edits": edits}

    def run(self, sent: Json) -> None:
        """Damage rows of a stack; read it, and let a conductor work on it and on a stack of others."""
        installation = self._renewed.get()
        self._count += 1
        try:
            self._run(installation, sent)
        finally:
            installation.restore()

    def _run(self, installation: Installation, sent: Json) -> None:
        member = installation.callers["member"]
        path = f"/v1/{PROJECT}/stacks/mine/{installation.names['$mine.stack_id']}"
        if (request := ACTIONS[sent["action"]]) is not None:
            _answer(member, request[0], path + request[1], request[2])
        for edit in sent["edits"]:
            _damage(installation, edit)
        self._read(member, path)
        body = {"stack_name": f"whole-{self._count}", "template": SIMPLE}
        whole = _answer(
            Caller(installation.api, OTHER, "member", "reader"), "POST", f"/v1/{OTHER}/stacks", body
        )
        self._work(installation, whole["stack"]["id"])
        for method, tail, content in WRITES:
            _answer(member, method, path + tail, content)
        self._work(installation, whole["stack"]["id"])

    def _read(self, member: Caller, path: str) -> None:
        for tail in READS:
            _answer(member, "GET", path + tail, None)
        _answer(member, "GET", f"/v1/{PROJECT}/stacks", None)

    def _work(self, installation: Installation, stack_id: str) -> None:
        """Let the conductor work until the stack of another project is complete.

        :raises Broken: it is not, or an error has reached the conductor's top.
        """
        world = installation.world
        stack = tables.stack
        query = sa.select(stack.c.status).where(stack.c.id == stack_id)

        def is_complete() -> bool:
            return world.database.read(lambda conn: conn.execute(query).scalar()) == "COMPLETE"

        is_made = world.settle(is_complete, within=WITHIN)
        if world.broken:
            text = world.broken[0].strip()
            raise Broken("conductor", text, text.rpartition("\n")[2][:80])
        if not is_made:
            raise Broken("others", f"a stack of others is not made within {WITHIN:.0f} s", "others")


def _value(choices: Choices) -> str | None:
    """Return a value as the database holds it; None: NULL."""
    kind = choices.below(5)
    if kind == 0:
        return None
    if kind == 1:
        return str(choices.one(WORDS))
    if kind == 2:
        return str(choices.one(TEXTS))
    if kind == 3:
        return json.dumps(choices.one(EXPRESSIONS))
    return json.dumps(choices.one(SCALARS))


def _damage(installation: Installation, edit: Json) -> None:
    """Set a column of a row of the project's, unless the database refuses the value."""
    table = tables.metadata.tables[edit["table"]]
    column = table.c[edit["column"]]
    mine = sa.select(tables.stack.c.id).where(tables.stack.c.project_id == PROJECT)
    rows = sa.select(table.c.id).order_by(table.c.id)
    if "stack_id" in table.c:
        rows = rows.where(table.c.stack_id.in_(mine))
    elif edit["table"] == "stack":
        rows = rows.where(table.c.project_id == PROJECT)
    else:
        used = sa.select(tables.content_use.c.content_id).where(tables.content_use.c.holder_id.in_(mine))
        rows = rows.where(table.c.id.in_(used))
    with installation.world.database.engine.begin() as conn:
        ids = conn.execute(rows).scalars().all()
        if not ids:
            return
        text = f'UPDATE "{table.name}" SET "{column.name}" = :value WHERE id = :id'
        values = {"value": edit["value"], "id": ids[edit["row"] % len(ids)]}
        try:
            conn.execute(sa.text(text), values)
        except DBError:  # The column takes no NULL.
            conn.rollback()


def _answer(caller: Caller, method: str, path: str, body: Json) -> Json:
    """Send a request; return the answer.

    :raises Broken: it is an error that nobody names.
    """
    path, _, query = path.partition("?")
    answer = caller.call(method, path, body, query=query)
    check_text(answer.text, path)
    content = answer.json if answer.text else None
    if answer.status_code >= 500 and answer.status_code != 503:
        kind = content["error"]["type"] if isinstance(content, dict) and "error" in content else ""
        if kind != "DamagedRow":
            raise Broken(
                "status", f"{method} {path} is answered by {answer.status_code}: {answer.text[:500]}", method
            )
    return content
