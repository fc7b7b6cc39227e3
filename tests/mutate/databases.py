"""The databases that tests have as their parameter."""

import re
from collections.abc import Collection

DATABASES = ("sqlite", "postgresql", "mariadb")
"""The cheapest first; the others are servers."""
ON_EACH = ("tests/services/db/test_completion.py",)
"""Files of tests that run other lines on a server: PostgreSQL ends and stores tasks in one statement."""
_PARAMETERS = {name: re.compile(rf"(?<=[\[-]){name}(?=[\]-])") for name in DATABASES}


def on_another(test: str, before: str, after: str) -> str:
    """Return the name of a test with another database in place of one, or the same name without that one."""
    return _PARAMETERS[before].sub(after, test)


def server_of(test: str) -> str | None:
    """Return the server that a test needs; None: it needs none."""
    return next((name for name in DATABASES[1:] if _PARAMETERS[name].search(test)), None)


def is_repeated(test: str, tests: Collection[str]) -> bool:
    """Return whether a test runs on a cheaper database, too: then it runs the same lines there."""
    if test.startswith(ON_EACH):
        return False
    server = server_of(test)
    cheaper = DATABASES[: DATABASES.index(server)] if server else ()
    return any(on_another(test, str(server), name) in tests for name in cheaper)
