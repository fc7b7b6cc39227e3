"""One request for each operation and each body that decides about a rule, and the table of who may do it."""

import pathlib
import typing
from collections.abc import Iterator, Mapping, Sequence

from harness.route_bodies import TEMPLATE, right_body
from stoker.cli.wiring.routes import ROUTES

Json = typing.Any
TABLE = pathlib.Path(__file__).parents[1] / "simulation" / "policy_matrix.txt"
CALLERS: dict[str, tuple[str, ...]] = {
    "nobody": (),
    "none": ("none",),
    "guest": ("heat_stack_user",),
    "reader": ("reader",),
    "member": ("reader", "member"),
    "admin": ("reader", "member", "admin"),
    "operator": ("reader", "member", "admin"),
}
"""The callers by their columns, with their roles; the first one has no token, and only the last one's
project is the admins'."""
SCOPES = ("foreign", "domain", "system")
"""The columns of an admin whose token is for another project, for a domain, and for the whole system."""
COLUMNS = (*CALLERS, *SCOPES)
BODIES: dict[str, Json] = {
    **{
        f"actions {name}": {name: None}
        for name in (
            *("suspend", "resume", "check", "continue", "step"),
            *("cancel_update", "cancel_without_rollback"),
        )
    },
    "no change": {"existing": True},
    "change": {"template": TEMPLATE},
}
"""The bodies of the requests whose rule follows from the body."""
BY_BODY = {
    ("POST", "actions"): [name for name in BODIES if name.startswith("actions")],
    ("PATCH", "{stack_id}"): ["no change", "change"],
}
OPEN = {"/", "/v1/openapi.json", "/v1", "/healthcheck", "/v1/identity/v3", "/v1/identity/v3/auth/tokens"}
"""Paths that are not for users of a project; a signature decides, or everybody may see them."""
WORDS = {401: "401", 403: "-"}
"""The words of the table for statuses; "yes" for all others: the policy has let the request pass."""
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")


class PolicyRequest(typing.NamedTuple):
    """A request of an operation, as the table names it.

    :ivar path: with the names of its variables in braces.
    :ivar body: None for an operation that takes one: whoever may ask sends a body that makes nothing.
    """

    method: str
    path: str
    name: str
    body: Json

    @property
    def sent(self) -> Json:
        """Return the body to send: one that nobody can use in the place of one that would make something."""
        has_none = self.body is not None or self.method in ("GET", "HEAD", "DELETE")
        return self.body if has_none else {"nothing": "such"}

    def filled(self, values: Mapping[str, str]) -> str:
        """Return the path with values in the places of its variables."""
        path = self.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", value)
        assert "{" not in path, path
        return path


def policy_requests() -> Sequence[PolicyRequest]:
    """Return the requests of all operations for users."""
    requests = []
    for path, methods in sorted(ROUTES.items()):
        if path in OPEN or "{arn" in path or "{row}" in path:
            continue
        for method in methods:
            for name in BY_BODY.get((method, path.rpartition("/")[2]), [""]):
                shown = f"{method:<6} {path}{f' [{name}]' if name else ''}"
                body = BODIES.get(name, right_body(method, path))
                requests.append(PolicyRequest(method, path, shown, body))
    return requests


def permissions() -> Mapping[str, Mapping[str, str]]:
    """Return the words of the table by the names of the requests, and then by the callers."""
    lines = (line for line in TABLE.read_text().splitlines() if line.startswith(_METHODS))
    return {name: dict(zip(COLUMNS, words, strict=True)) for name, words in map(_divided, lines)}


def _divided(line: str) -> tuple[str, list[str]]:
    words = line.split()[-len(COLUMNS) :]
    return line[:WIDTH].rstrip(), words


WIDTH = 100
"""Columns of the names in the table."""


def table_line(name: str, words: Iterator[str] | Sequence[str]) -> str:
    """Return a line of the table."""
    return f"{name:<{WIDTH}}" + "".join(f"{word:<9}" for word in words).rstrip()
