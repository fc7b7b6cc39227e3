"""The variables of the suite, and so of each program that it starts: a short list, whoever the caller is.

`tests/conftest.py` clears all others before anything is imported that reads them.
"""

import json
import os
from collections.abc import Mapping, MutableMapping

KEPT = {
    "DEVSTACK_DIR": "a checkout on which a test of the plugin works, in the full tier",
    "HOME": "the account's settings of git and pip, and the caches of these",
    "PATH": "programs; those of a tier replace it, see harness/permitted.py",
    "STOKER_TEST_CLOUD": "a cloud that runs, in place of one that the tests start",
    "TMPDIR": "the disk for temporary files",
}
"""Names of variables, with the reason."""
KEPT_PREFIXES = ("PYTEST_", "STOKER_TESTS_")
"""Prefixes of pytest with xdist, and of the suite's own for its processes."""
FIXED = {"LANG": "C.UTF-8"}
"""The language of messages, which tests read."""
REGISTRIES = {
    *("ALL_PROXY", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "APT_CONFIG"),
    *("CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("SSL_CERT_DIR", "SSL_CERT_FILE"),
}
"""Names, in capitals, of variables for programs that download packages."""
REGISTRY_PREFIXES = ("NPM_CONFIG_", "PIP_")
ASIDE = "STOKER_TESTS_REGISTRIES"
"""Keeps those for the tests that install something: the fixture `registries`."""


def clear(environ: MutableMapping[str, str] = os.environ) -> None:
    """Remove the variables of the caller, but for those that are kept."""
    if ASIDE not in environ:  # A process of xdist has what its parent has left.
        aside = {name: text for name, text in environ.items() if _is_for_registries(name)}
        environ[ASIDE] = json.dumps(aside)
    for name in list(environ):
        if name not in KEPT and not name.startswith(KEPT_PREFIXES):
            del environ[name]
    environ.update(FIXED)


def registries(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the caller's variables for programs that download packages."""
    return dict(json.loads(environ.get(ASIDE, "{}")))


def _is_for_registries(name: str) -> bool:
    return name.upper() in REGISTRIES or name.upper().startswith(REGISTRY_PREFIXES)
