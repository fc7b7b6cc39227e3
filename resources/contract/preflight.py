"""The questions of types to the cloud before anything is begun: amounts of quotas, values that do not fit.

They are computed of a template, or of what an update would make of a stack, and of the lists and limits that
the caller of the request may read.  Nothing is written, and no thing is read alone: the number of requests
grows with the services, not with the resources.
"""

import enum
import functools
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ...shapes import JsonMap
from .known_stack import KnownResource, KnownStack, Made, PropertyPath, Thing

QueryValue = str | int | tuple[str, ...]
"""A parameter of a GET; several texts: the parameter is repeated for each."""
QuotaAmount = int | str
"""An amount of a quota; a text: the name of the property whose value is the amount."""
QuotaNeeds = Mapping[str, int | None]
"""Amounts by name of the quota, as its service calls it; None: it is not known yet.

A quota of another service than the type's own is called ``SERVICE/NAME``, such as ``network/port``.
"""


class Certainty(enum.StrEnum):
    """The certainty of a finding."""

    CERTAIN = "certain"
    LIKELY = "likely"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Misfit:
    """A value that does not fit the cloud as it is now.

    :ivar resource: the name of the resource.
    :ivar path: the path of the value in its properties; (): the whole resource.
    :ivar needed: what the template asks for.
    :ivar available: what the cloud has.
    :ivar advice: what the user can do.
    """

    resource: str
    message: str
    path: PropertyPath = ()
    needed: str = ""
    available: str = ""
    advice: str = ""
    certainty: Certainty = Certainty.CERTAIN


class Members(Sequence[JsonMap]):
    """The members of a collection of the cloud, as its service tells them.

    A rule looks up a value for each resource, so members are found by an index, not by a search.
    """

    def __init__(self, members: Sequence[JsonMap] = ()) -> None:
        self._members = members
        self._by_field: dict[str, dict[str, list[JsonMap]]] = {}

    @typing.overload
    def __getitem__(self, index: int) -> JsonMap: ...

    @typing.overload
    def __getitem__(self, index: slice) -> Sequence[JsonMap]: ...

    def __getitem__(self, index: int | slice) -> JsonMap | Sequence[JsonMap]:
        """Return a member, or some of them."""
        return self._members[index]

    def __len__(self) -> int:
        """Return the number of members."""
        return len(self._members)

    def where(self, field: str, value: str) -> Sequence[JsonMap]:
        """Return the members that have a text in a field, or in the list that the field is."""
        if field not in self._by_field:
            self._by_field[field] = self._indexed(field)
        return self._by_field[field].get(value, ())

    def _indexed(self, field: str) -> dict[str, list[JsonMap]]:
        index: dict[str, list[JsonMap]] = {}
        for member in self._members:
            content = member.get(field)
            # A service decides the content: what is no text is nothing that a template can name.
            for text in content if isinstance(content, list) else (content,):
                if isinstance(text, str):
                    index.setdefault(text, []).append(member)
        return index


class CloudFacts(typing.Protocol):
    """Lists and limits of the cloud as the caller of a request sees them.

    None stands for what is not known: the service has not answered yet, or not in time, or refuses to answer.
    A rule then says nothing; it is called again when more is known.
    """

    @property
    def project_id(self) -> str:
        """The project that the caller's token is for."""

    def members(self, service: str, path: str, items: str, **query: QueryValue) -> Members | None:
        """Return the members of a collection.

        :param service: its type in the service catalog.
        :param items: key of the members in an answer.
        """

    def entry(
        self, service: str, path: str, item: str, *, microversion: str = "", **query: QueryValue
    ) -> JsonMap | None:
        """Return the object in the answer to a GET; {}: there is none.

        :param item: its key in the answer; "": the answer is the object.
        :param microversion: the newest that may be used; "": that of all other calls.
        """


@dataclass(frozen=True)
class PlannedStack:
    """The resources of one template, and which of them an action makes.

    :ivar created: names of the resources that did not exist.
    :ivar replaced: names of those that get a new thing; the old one exists until that is made.
    :ivar present: ids of the things that stay, and of those with an ``external_id``, by name of the resource.
    :ivar own: ids of all things that the tree of stacks has, which the action may change or delete; each also
        as ``TYPE:ID``.
    :ivar elsewhere: types that the action makes or changes in other templates of the tree, and those of
        resources that are not certain to be there; None: not all are known.
    """

    known: KnownStack
    created: frozenset[str] = frozenset()
    replaced: frozenset[str] = frozenset()
    present: Mapping[str, str] = field(default_factory=dict)
    own: frozenset[str] = frozenset()
    elsewhere: frozenset[str] | None = frozenset()

    @functools.cached_property
    def new(self) -> frozenset[str]:
        """Return the names of the resources that get a new thing."""
        return self.created | self.replaced

    def new_of_type(self, *types: str) -> Iterator[KnownResource]:
        """Yield the resources of some types that get a new thing."""
        return (resource for resource in self.known.of_type(*types) if resource.name in self.new)

    def made(self, thing: Thing | None) -> KnownResource | None:
        """Return the resource that makes a thing; None: none does, or it is not known."""
        return self.known.made(thing)

    def existing(self, thing: Thing | None) -> Thing | None:
        """Return a thing by its id if it exists before the action, and stays; None: that is not known.

        What the action makes stays Made, so nothing of the cloud can have to do with it.
        """
        if not isinstance(thing, Made) or thing.resource in self.new:
            return thing
        return self.present.get(thing.resource)

    def makes(self, thing: Thing | None) -> bool:
        """Return whether the action makes a thing."""
        return isinstance(thing, Made) and thing.resource in self.new

    def may_change_elsewhere(self, *types: str) -> bool:
        """Return whether other templates of the tree may make or change things of some types.

        A rule that finds nothing of them here knows nothing then.
        """
        return self.elsewhere is None or not self.elsewhere.isdisjoint(types)

    def of_taken(self, *holders: str) -> Certainty:
        """Return the certainty with which a thing is not free that some others hold, named by their ids.

        The action may free what the stacks hold themselves.
        """
        return Certainty.CERTAIN if self.own.isdisjoint(holders) else Certainty.LIKELY


CloudRule = Callable[[PlannedStack, CloudFacts], Iterable[Misfit]]
"""A rule over the resources of one template and the cloud.

It says something only of resources that the action makes, and only what the service would refuse: a value
that is not known breaks no rule.
"""


def needs_of(quota: Mapping[str, QuotaAmount], resource: KnownResource) -> QuotaNeeds:
    """Return the amounts of declared quotas that a resource takes."""
    return {name: _amount(amount, resource.values) for name, amount in quota.items()}


def _amount(amount: QuotaAmount, values: JsonMap) -> int | None:
    if isinstance(amount, int):
        return amount
    value = values.get(amount)
    return value if isinstance(value, int) else None
