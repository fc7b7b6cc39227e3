"""The access rules of a share: who may use it."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ....shapes import Json, JsonMap
from ...contract import PermanentError
from ..service import Service, objects_of

READ_AND_WRITE = "rw"
"""The level of a rule that names none."""
DENIED = ("queued_to_deny", "denying")
"""States of a rule that the service removes."""


class AccessRule(NamedTuple):
    """A rule; a share has one of each kind and address."""

    access_type: str
    access_to: str
    access_level: str

    @classmethod
    def of(cls, fields: JsonMap) -> "AccessRule":
        """Return the rule that the fields of an entry, or of an answer, mean."""
        level = fields.get("access_level") or READ_AND_WRITE
        return cls(str(fields["access_type"]), str(fields["access_to"]), str(level))

    @property
    def subject(self) -> tuple[str, str]:
        """Return the kind and the name of the client that gets access."""
        return self.access_type, self.access_to


class AccessRules:
    """The rules of one share.

    :param service: calls of the share's service.
    :param share: the share's id.
    """

    def __init__(self, service: Service, share: str) -> None:
        self._service = service
        self._share = share

    def converge(self, entries: Sequence[JsonMap]) -> bool:
        """Deny and allow rules; return whether the share has these alone, and they are in force.

        The calls may be repeated.  A rule with another level takes the place of the one before, once that is
        gone, so a further call follows.

        :raises PermanentError: the share's driver refuses a rule.
        """
        expected = {AccessRule.of(entry) for entry in entries}
        listed = self._list()
        present = {AccessRule.of(entry) for entry in listed}
        for entry in listed:
            if AccessRule.of(entry) in expected:
                _check(entry)
            elif entry["state"] not in DENIED:
                self._act("deny_access", {"access_id": entry["id"]})
        in_the_way = {rule.subject for rule in present - expected}
        for rule in sorted(expected - present):
            if rule.subject not in in_the_way:
                self._act("allow_access", rule._asdict())
        return present == expected and all(entry["state"] == "active" for entry in listed)

    def reported(self, entries: Collection[JsonMap]) -> list[Json]:
        """Return the present rules, in the form of the template where they are equal to it."""
        present = {AccessRule.of(entry) for entry in self._list() if entry["state"] not in DENIED}
        if present == {AccessRule.of(entry) for entry in entries}:
            return list(entries)
        return [rule._asdict() for rule in sorted(present)]

    def _list(self) -> list[JsonMap]:
        return objects_of(self._service.get("/share-access-rules", share_id=self._share), "access_list")

    def _act(self, action: str, values: JsonMap) -> None:
        self._service.post(f"/shares/{self._share}/action", {action: values})


def _check(entry: JsonMap) -> None:
    """Check that the service could carry out a rule."""
    if entry["state"] == "error":
        rule = AccessRule.of(entry)
        text = f"The access rule for {rule.access_type} {rule.access_to} went to status error"
        raise PermanentError(text, kind="ResourceInError")
