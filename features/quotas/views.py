"""Views of quotas."""

from collections.abc import Mapping, Sequence

from ...shapes import Json
from .operations import QuotaUsage


def quotas_by_project(
    defaults: Mapping[str, int], page: Sequence[tuple[str, Mapping[str, int]]]
) -> dict[str, Json]:
    """Return the view of the quotas that admins have set.

    :param defaults: the limits of all other projects, by the quota's name; -1: no limit.
    :param page: projects by id, each with the quotas that differ from the defaults.
    """
    return {
        "defaults": dict(defaults),
        "projects": [{"project": project_id, "quotas": dict(limits)} for project_id, limits in page],
    }


def quota(usage: QuotaUsage) -> dict[str, int]:
    """Return the view of a quota of a project; -1: no limit."""
    return {"limit": usage.limit, "default": usage.default, "used": usage.used}
