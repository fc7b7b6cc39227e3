"""The operations of the routes: their handlers, the request, and the services that handlers ask."""

import typing
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field

from sqlalchemy.engine import Connection

from ..db.engine import Database
from ..db.rows import ListedStack, Stack
from ..engine.context import EngineContext, Review
from ..engine.guests import Guests
from ..keystone.caller import CallerAccess
from ..resources.registry import ResourceRegistry
from ..sealing.sealer import BoundSealer, Sealer
from .authenticator import Authenticator
from .collaborators import CloudOf, Downloads, Exchange, Preflight, ReadColumns, no_cloud
from .described import Description
from .reply import Reply
from .request import HttpRequest
from .settings import ApiLimits
from .strangers import Strangers

T = typing.TypeVar("T")


@dataclass(frozen=True)
class Services:
    """Collaborators of the handlers, made in cli/wiring.

    :ivar context: what the use cases take.
    :ivar health_problem: a function that returns why the service cannot do its work; None: it can.
    :ivar metrics: a function that returns the text of ``/metrics``; None: there is no such path.
    :ivar cloud: a function that returns the cloud as the owner of an access sees it; None: it is unknown.
    :ivar downloads: the functions that fetch files that requests name; None: nothing is fetched.
    :ivar draining: a function that returns whether the service is about to end.
    :ivar ec2: the exchange of signed requests for users; None: nobody is authenticated.
    :ivar columns: functions that read the fields of features in lists of stacks.
    :ivar features: what the handlers of features use, by its type.
    :ivar poll_ring: a function that asks all conductors to poll the ring's members now.
    :ivar count_request: a function that counts a request of a project, or raises a Fault after too many.
    :ivar count_key: the same for an access key, apart from projects: anybody can name it.
    :ivar strangers: the limit of requests whose senders nobody knows.
    """

    database: Database
    context: EngineContext
    guests: Guests
    registry: ResourceRegistry
    sealer: Sealer
    auth: Authenticator
    clock: Callable[[], float]
    limits: ApiLimits = ApiLimits()
    build: typing.Mapping[str, str] = field(default_factory=dict)
    health_problem: Callable[[], str | None] = lambda: None
    metrics: Callable[[], bytes] | None = None
    draining: Callable[[], bool] = lambda: False
    cloud: CloudOf = no_cloud
    downloads: Downloads | None = None
    ec2: Exchange | None = None
    count_request: Callable[[str], None] = lambda project_id: None
    count_key: Callable[[str], None] = lambda key: None
    strangers: Strangers = field(default_factory=Strangers)
    poll_ring: Callable[[], None] = lambda: None
    columns: Sequence[ReadColumns] = ()
    features: Mapping[type, typing.Any] = field(default_factory=dict)

    def of(self, kind: type[T]) -> T:
        """Return what the handlers of a feature use, by its type; the feature is why it is there."""
        return typing.cast(T, self.features[kind])

    @property
    def preflight(self) -> Preflight | None:
        """The comparison of goals with the caller's cloud; None: that feature is left out."""
        return typing.cast(Preflight | None, self.features.get(Preflight))


@dataclass(frozen=True, kw_only=True)
class Request(HttpRequest):
    """A request as the handlers see it."""

    services: Services

    def read(self, query: Callable[[Connection], T]) -> T:
        """Return the result of a query, in one transaction.

        A handler of GET calls this once: so all that it shows is of the same moment.

        :raises TooMuchToRead: the answer of a GET would need more memory than it may.  A request that changes
            something has no such limit.
        """
        is_answer = self.method in ("GET", "HEAD")
        return self.services.database.read(query, most=self.limits.read_bytes if is_answer else 0)

    def stack(self) -> Stack:
        """Return the stack of the path; see find_stack."""
        return self.read(self.find_stack)

    def living_stack(self) -> Stack:
        """Return the stack of the path, unless it is deleted; see find_living_stack."""
        return self.read(self.find_living_stack)

    def permitted_stack(self) -> Stack:
        """Return the stack of the path, if it lives and the caller may use the types of all its resources.

        :raises Fault: 404, there is no such stack.
        :raises TypeForbidden: a type is not for the caller.
        """

        def find(conn: Connection) -> Stack:
            stack = self.find_living_stack(conn)
            self.check_types(conn, stack)
            return stack

        return self.read(find)

    def review(self, reviewed_by: Callable[[Preflight, CallerAccess], Review]) -> Review | None:
        """Return the comparison of a goal with the caller's cloud; None: nothing is compared.

        :param reviewed_by: takes the comparison that fits the request.
        """
        preflight = self.services.preflight
        access = self.caller.access
        # Without Keystone there is no cloud to look at, and nothing is different.
        return None if preflight is None or access is None else reviewed_by(preflight, access)

    def sealer_of(self, stack: ListedStack) -> BoundSealer:
        """Return the sealer for all that is stored of a stack."""
        return self.services.sealer.of_stack(stack.project_id, stack.root_id)


Handler = Callable[[Request], Reply]


@dataclass(frozen=True)
class Operation:
    """One method of one route.

    :ivar rule: the policy rule, with Heat's name; None: the handler asks for one, or everybody may do it,
        with a path that has no project.
    :ivar presigned: the purpose of the path's signature, whose owner may do it, and nobody else; "": no
        signature is in the path.
    :ivar everywhere: whether it concerns the whole installation; its path has no project, the token's counts.
    :ivar signed: whether the handler verifies a signature of the whole request, whose body is not parsed.
    :ivar templates: whether users sign it, too, whose templates may be larger than what guests may send.
    :ivar description: the parts of its description that the route does not say; None: those of described.py.
    :ivar name: the beginning of its id in the API's description; empty: that of its handler, with its module.
    :ivar shared: the names of the query's parameters, where the answer depends on nothing of the caller
        but their project and their rights, so that requests share it (shared_answers.py).  None: they
        do not share it.
    """

    handler: Handler
    rule: str | None
    presigned: str = ""
    signed: bool = False
    templates: bool = False
    everywhere: bool = False
    shared: Set[str] | None = None
    description: Description | None = None
    name: str = ""


Routes = Mapping[str, Mapping[str, Operation]]
"""Operations by path and method."""
