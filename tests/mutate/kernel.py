"""The modules in which faults are planted: the code that safety rests on."""

import fnmatch
import pathlib

ROOT = pathlib.Path(__file__).parents[2]
KERNEL: dict[str, tuple[str, ...]] = {
    "db/work": ("db/work/*.py",),
    "db/stacks, db/traversals": ("db/stacks.py", "db/traversals.py"),
    "conductor/worker": ("conductor/worker/*.py",),
    "conductor/duties": ("conductor/duties/*.py",),
    "conductor/steps": (
        *("conductor/steps/children.py", "conductor/steps/software.py", "conductor/steps/orphaned_create.py"),
        *("conductor/steps/runner.py", "conductor/steps/outcomes.py", "conductor/steps/claimed_writes.py"),
    ),
    "ring": ("ring/*.py",),
    "sealing": ("sealing/*.py",),
    "engine/planning": ("engine/planning/*.py",),
    "engine": (
        *("engine/cancel.py", "engine/breakpoints.py", "engine/nested_stacks.py", "engine/quotas.py"),
        *("engine/change.py", "engine/tree_budget.py", "engine/tree_limit.py", "engine/parent_resource.py"),
    ),
    "template": ("template/conditions.py", "template/fold.py", "template/hidden.py"),
    "api": (
        *("api/policy.py", "api/request.py", "api/signed.py", "api/presigned.py", "api/ec2_signatures.py"),
        *("api/shared_answers.py", "api/strangers.py"),
    ),
    "keystone": ("keystone/delegations.py", "keystone/guarded_http.py", "keystone/network_addresses.py"),
}
"""Rows of the table of results -> patterns of their modules' paths.  Each pattern has a module."""
COMPLETE = {"db/work", "ring/hashring.py", "sealing", "api/policy.py"}
"""Where each fault is noticed, or is known to change nothing; elsewhere nineteen of twenty are."""


def sources() -> list[str]:
    """Return the paths of all modules of the kernel, from the root."""
    paths = []
    for patterns in KERNEL.values():
        for pattern in patterns:
            matching = sorted(str(path.relative_to(ROOT)) for path in ROOT.glob(pattern))
            assert matching, f"{pattern}: there is no such module; see {__file__}"
            paths += [path for path in matching if not path.endswith("__init__.py")]
    return paths


def row_of(path: str) -> str:
    """Return the row of the table to which a module belongs."""
    return next(
        row for row, patterns in KERNEL.items() if any(fnmatch.fnmatch(path, each) for each in patterns)
    )
