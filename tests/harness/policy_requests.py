"""One request for each operation and each body that decides about a rule, and the table of who may do it."""

import pathlib
import typing
from collections.abc import Iterator, Mapping, Sequence

from harness.route_bodies import TEMPLATE, right_body
from stoker.api.errors import Fault
from stoker.api.keystone import KeystoneAuthentication
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


def headers_of(caller: str, project: str) -> dict[str, str]:
    """Return the headers that Keystone's middleware makes of a caller's token."""
    if caller == "nobody":
        return {}
    scope = {
        "foreign": {"X-Project-Id": "another"},
        "domain": {"X-Domain-Id": "default"},
        "system": {"X-OpenStack-System-Scope": "all"},
    }.get(caller, {"X-Project-Id": project})
    # Keystone sends it only for tokens of projects.
    is_of_project = "X-Project-Id" in scope and caller != "operator"
    admin_project = {"X-Is-Admin-Project": "False"} if is_of_project else {}
    named = {"X-Identity-Status": "Confirmed", "X-User-Name": "ann"}
    return {**named, "X-Roles": ",".join(CALLERS.get(caller, CALLERS["admin"])), **scope, **admin_project}


def decision(authentication: KeystoneAuthentication, caller: str, rule: str) -> str:
    """Return the word of the table for a rule in the own project."""
    headers = {key.upper(): value for key, value in headers_of(caller, "own").items()}
    try:
        authentication.authorize(authentication.identify("own", headers), rule)
    except Fault as fault:
        return WORDS[fault.status]
    return "yes"


def rule_of(request: PolicyRequest) -> str | None:
    """Return the rule that decides about a request; None: no single one does."""
    _, _, name = request.name.partition(" [")
    kind, _, word = name.rstrip("]").partition(" ")
    if kind == "actions":
        return f"actions:{word}"
    by_body = {"no": "stacks:update_no_change", "change": "stacks:update_patch"}
    return by_body.get(kind, ROUTES[request.path][request.method].rule)


def permissions() -> Mapping[str, Mapping[str, str]]:
    """Return the words of the table by the names of the requests, and then by the callers."""
    lines = (line for line in TABLE.read_text().splitlines() if line.startswith(_METHODS))
    return {name: dict(zip(COLUMNS, words, strict=True)) for name, words in map(_divided, lines)}


def rules() -> Mapping[str, Mapping[str, str]]:
    """Return the words of the table by the names of rules, and then by the callers.

    Those that decide about a request have its words, and the others have lines of their own.
    """
    words = permissions()
    decided = {rule_of(request): words[request.name] for request in policy_requests()}
    _, _, others = TABLE.read_text().partition("\nrule ")
    lines = map(_divided, others.splitlines()[1:])
    of_others = {name: dict(zip(COLUMNS, row, strict=True)) for name, row in lines}
    return {rule: row for rule, row in (decided | of_others).items() if rule is not None}


def _divided(line: str) -> tuple[str, list[str]]:
    words = line.split()[-len(COLUMNS) :]
    return line[:WIDTH].rstrip(), words


WIDTH = 100
"""Columns of the names in the table."""


def table_line(name: str, words: Iterator[str] | Sequence[str]) -> str:
    """Return a line of the table."""
    return f"{name:<{WIDTH}}" + "".join(f"{word:<9}" for word in words).rstrip()
