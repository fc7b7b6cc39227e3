"""``stoker-manage reconcile``: the things of the cloud that no row has, and their adoption or deletion."""

import datetime
import functools
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from cliff.lister import Lister

from ...conductor.steps.endpoints import Endpoints
from ...db.engine import Database
from ...features.drift import known_things, marked_things
from ...features.drift import rows as drift
from ...features.drift.context import DriftServices
from ...features.drift.marked_things import MarkedThing
from ...features.drift.unknown import Comparison, LostThing, UnknownThing, UnknownThings, UnreadList
from ...keystone.delegations import Delegations
from ...observe.terminal import HarmlessTable, write_wrapped
from ..config.client_options import client_options
from ..wiring.environment_files import installed_types, with_operator_files
from ..wiring.parts import make_trusts
from ..wiring.secrets import make_sealer
from .base import AdminError
from .progress import ProgressLine
from .purge import seconds_of
from .sessions import Session, session_of

PAGE = 100
"""Projects that one query reads."""
MOST_NAMED = 5
"""Types that a line names of those whose lists one reason hides: without a credential these are eighty."""
MOST_ROOTS = 50
"""Stacks of a project that are tried for their rights: the first that does nothing is taken."""


COLUMNS = ("Project", "Type", "ID", "Name", "Created", "Resource", "Result")


@dataclass(frozen=True)
class Choice:
    """The operator's choice.

    :ivar adopts: whether resources get the things that their creations have made.
    :ivar deletes: whether the things whose keys no row has are deleted.
    :ivar acts: whether anything is done at all.
    :ivar before: things that are newer, or do not say how old they are, stay: seconds since the epoch.
    :ivar limit: most things of a run.
    """

    adopts: bool
    deletes: bool
    acts: bool
    before: float
    limit: int


class Reconcile(HarmlessTable, Lister):
    """Compare the things that Stoker has made in the cloud with its rows, and adopt or delete the others.

    Such things are there after the database was restored to an earlier moment.  With --adopt, resources that
    lack their things get those that carry the keys of their creations.  With --delete, the things whose keys
    no row has are deleted; those of another installation in the same project are among them.  Nothing is done
    without --yes, and nothing to a stack while an action of it is in progress.  The services are asked with
    the rights of the stacks' users.
    """

    def get_parser(self, prog_name: str) -> typing.Any:
        parser = super().get_parser(prog_name)
        parser.add_argument("--dry-run", action="store_true", help="list only")
        parser.add_argument(
            "--adopt", action="store_true", help="give things to the resources whose creations have made them"
        )
        parser.add_argument(
            "--delete", action="store_true", help="delete the things whose keys no resource has"
        )
        parser.add_argument(
            "--yes", action="store_true", help="confirm the changes; without this they are only listed"
        )
        parser.add_argument(
            "--older-than",
            default="1h",
            metavar="AGE",
            help="things that are newer, or do not say their age, stay; 0s: none (default: %(default)s)",
        )
        parser.add_argument(
            "--limit",
            type=int,
            default=100,
            metavar="N",
            help="do nothing where there are more than N things to adopt or delete (default: %(default)s)",
        )
        parser.add_argument(
            "--project", action="append", metavar="ID", help="a project to compare; all that have stacks"
        )
        return parser

    def take_action(self, parsed: typing.Any) -> typing.Any:
        if not (parsed.dry_run or parsed.adopt or parsed.delete):
            raise AdminError("say what to do: --adopt, --delete or both; --dry-run only lists")
        if parsed.limit < 1:
            raise AdminError(f"--limit must be 1 or more, not {parsed.limit}")
        session = session_of(self, long_work=True)
        choice = Choice(
            adopts=parsed.adopt,
            deletes=parsed.delete,
            acts=parsed.yes and not parsed.dry_run,
            before=session.database.clock() - seconds_of(parsed.older_than),
            limit=parsed.limit,
        )
        unknown = UnknownThings(_services(session))
        comparisons = {}
        line = ProgressLine(self.app.stderr)
        projects = parsed.project or list(_projects(session))
        for done, project in enumerate(projects):
            line.count("reconcile", done, "projects compared", len(projects))
            comparisons[project] = unknown.of_project(project)
        line.clear()
        for project, comparison in comparisons.items():
            write_wrapped(self.app.stderr, *unread_lines(project, comparison.unread))
        reconciliation = Reconciliation(session.database, choice)
        return COLUMNS, reconciliation.rows(comparisons)


def unread_lines(project: str, lists: Sequence[UnreadList]) -> list[str]:
    """Return what to say of the lists that could not be read: a line for each reason."""
    by_reason: dict[str, list[str]] = {}
    for unread in lists:
        by_reason.setdefault(unread.reason, []).extend(unread.types)
    return [
        f"project {project}: not compared: {reason}: {_some(types)}" for reason, types in by_reason.items()
    ]


def _some(types: Sequence[str]) -> str:
    """Return the first types, and how many more there are."""
    more = f" and {len(types) - MOST_NAMED} more" if len(types) > MOST_NAMED else ""
    return f"{', '.join(types[:MOST_NAMED])}{more}"


class Reconciliation:
    """Adopts and deletes things, as the operator has chosen."""

    def __init__(self, database: Database, choice: Choice) -> None:
        self._database = database
        self._choice = choice

    def rows(self, comparisons: Mapping[str, Comparison]) -> list[tuple[str, ...]]:
        """Return a row for each thing, with what became of it.

        :raises AdminError: there are more things than the limit.
        """
        choice = self._choice
        count = sum(
            choice.adopts * sum(self._is_old(lost.thing) for lost in comparison.lost)
            + choice.deletes * sum(self._is_old(thing) for thing in comparison.things)
            for comparison in comparisons.values()
        )
        if choice.acts and count > choice.limit:
            raise AdminError(
                f"{count} things are to be adopted or deleted, more than --limit {choice.limit}: nothing was "
                "done. See the list (--dry-run) for whether the database and the projects are the right ones"
            )
        rows = []
        for project, comparison in comparisons.items():
            for lost in comparison.lost:
                rows.append(_row(lost.thing, f"{lost.row.stack_name}/{lost.row.name}", self._adopt(lost)))
            results = self._delete(project, comparison.things)
            rows += [_row(thing, "", results[thing.physical_id]) for thing in comparison.things]
        return rows

    def _is_old(self, thing: UnknownThing) -> bool:
        """Return whether a thing is as old as the operator says, or its age does not matter."""
        if self._choice.before >= self._database.clock():
            return True
        created = _created(thing)
        return created is not None and created < self._choice.before

    def _planned(self, thing: UnknownThing, verb: str, *, chosen: bool) -> str | None:
        """Return the result of a thing to which nothing is done; None: it is the verb's."""
        if not chosen:
            return "stays"
        if not self._is_old(thing):
            return "stays: too new, or of unknown age"
        return None if self._choice.acts else f"would be {verb}"

    def _adopt(self, lost: LostThing) -> str:
        if (result := self._planned(lost.thing, "adopted", chosen=self._choice.adopts)) is not None:
            return result
        try:
            adopted = self._database.write(
                lambda conn: marked_things.adopt(
                    conn,
                    _marked(lost.thing),
                    lost.row.resource_id,
                    lost.row.physical_id,
                    now=self._database.clock(),
                )
            )
        except marked_things.StackBusy as error:
            return f"stays: {error}"
        return "adopted" if adopted else "stays: its resource has changed"

    def _delete(self, project_id: str, things: Sequence[UnknownThing]) -> dict[str, str]:
        """Begin to delete things of a project; return the results by their ids."""
        results: dict[str, str] = {}
        chosen = []
        for thing in things:
            result = self._planned(thing, "deleted", chosen=self._choice.deletes)
            if result is None:
                chosen.append(thing)
            else:
                results[thing.physical_id] = result
        if chosen:
            result = self._remove(project_id, [_marked(thing) for thing in chosen])
            results |= {thing.physical_id: result for thing in chosen}
        return results

    def _remove(self, project_id: str, chosen: Sequence[MarkedThing]) -> str:
        """Begin to delete things with the rights of the first stack that does nothing; return the result."""
        roots = self._database.read(
            functools.partial(known_things.living_roots, project_id=project_id, limit=MOST_ROOTS)
        )
        reason = "the project has no stack whose user's rights could be used"
        for root in roots:
            try:
                remove = functools.partial(
                    marked_things.remove, stack_id=root, things=chosen, now=self._database.clock()
                )
                keeper = self._database.write(remove)
            except marked_things.StackBusy as error:
                reason = str(error)
            else:
                return "stays: a resource has it" if keeper is None else f"deleted by stack {keeper.name}"
        return f"stays: {reason}"


def _created(thing: UnknownThing) -> float | None:
    """Return when a thing was made, in seconds since the epoch; None: its service does not say that."""
    try:
        moment = datetime.datetime.fromisoformat(thing.created_at)
    except ValueError:
        return None
    # Some services leave out the zone, which is UTC.
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp()


def _marked(thing: UnknownThing) -> MarkedThing:
    return MarkedThing(thing.type, thing.physical_id, thing.key)


def _row(thing: UnknownThing, resource: str, result: str) -> tuple[str, ...]:
    return (
        *(thing.project_id, thing.type, thing.physical_id, thing.name, thing.created_at),
        *(resource, result),
    )


def _services(session: Session) -> DriftServices:
    catalogue = with_operator_files(installed_types(session.conf), session.conf)
    sealer = make_sealer(session.conf)
    delegations = Delegations(
        database=session.database,
        sealer=sealer,
        trusts=make_trusts(session.conf, catalogue),
        clock=session.database.clock,
    )
    return DriftServices(
        database=session.database,
        registry=catalogue,
        sealer=sealer,
        clock=session.database.clock,
        session=delegations.session,
        host="",
        endpoints=Endpoints(client_options(session.conf)),
    )


def _projects(session: Session) -> Iterator[str]:
    last = ""
    while True:
        names = session.database.read(functools.partial(drift.with_stacks, after=last, limit=PAGE))
        yield from names
        if len(names) < PAGE:
            return
        last = names[-1]
