"""The numbers of a quota of the network service that a creation exceeds: its refusal names only the quota."""

import re

from ...contract import OverQuota, PermanentError, RetryableError
from ..limits import detailed
from ..service import Service, object_of

_QUOTAS = re.compile(r"resources: \[([a-z_', ]+)\]")


def with_numbers(error: OverQuota, service: Service, project_id: str) -> OverQuota:
    """Return a refusal with what the project has, and what it may have.

    :param project_id: the project of the thing; the service answers for the caller's own only.
    """
    named = _QUOTAS.search(str(error))
    if named is None:
        return error
    try:
        quotas = object_of(service.get(f"/quotas/{project_id}/details"), "quota")
    except (PermanentError, RetryableError):
        return error  # It is a detail: the reason is there without it.
    names = [name.strip(" '") for name in named[1].split(",")]
    numbers = [
        f"{name}: {quota.used} of {quota.limit} in use"
        for name in names
        if (quota := detailed(quotas, name)) is not None
    ]
    return OverQuota(f"{error} ({', '.join(numbers)})", after=error.after) if numbers else error
