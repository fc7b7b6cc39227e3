"""The cloud as a caller sees it, of answers that a test has written down; for preflights."""

import typing
from collections.abc import Mapping

from stoker.resources.contract import Members

Json = typing.Any
PROJECT = "p"


class KnownCloud:
    """Implements CloudFacts.

    :param answers: lists and objects by "SERVICE PATH"; a service does not tell what is missing.
    :ivar asked: "SERVICE PATH" of all that was asked, in order.
    """

    project_id = PROJECT

    def __init__(self, answers: Mapping[str, Json]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def members(self, service: str, path: str, items: str, **query: str | int) -> Json:
        """The members of a list."""
        answer = self._answer(service, path)
        return None if answer is None else Members(answer)

    def entry(self, service: str, path: str, item: str, **query: str | int) -> Json:
        """An object."""
        return self._answer(service, path)

    def _answer(self, service: str, path: str) -> Json:
        self.asked.append(f"{service} {path}")
        return self.answers.get(f"{service} {path}")


def quotas(**free: int) -> dict[str, Json]:
    """Limits of which so much is left, by name, in the form of Nova and Cinder."""
    return {name: {"limit": left + 3, "in_use": 2, "reserved": 1} for name, left in free.items()}
