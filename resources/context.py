"""The context of a step: a view of its resource, and calls for siblings, addresses, sessions and the like.

A nested stack, the *child*, is a stack like any other, run by whichever conductors take its tasks.  The
parent's step stores it and parks; the transaction that ends the child wakes it.
"""

import typing
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

if typing.TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter
    from keystoneauth1.session import Session

Json = typing.Any
T = typing.TypeVar("T")


def physical_name(stack_name: str, resource_name: str, key: str) -> str:
    """Return a name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters."""
    tail = f"-{resource_name}-{key.replace('-', '')[:12]}"
    return (stack_name[: max(0, 255 - len(tail))] + tail)[-255:]


@dataclass(frozen=True)
class StackFacts:
    """The stack a resource belongs to."""

    id: str
    name: str
    project_id: str


@dataclass(frozen=True)
class ResourceView:
    """A resource as a step sees it.

    :ivar id: number of the resource row, unique in the installation.
    :ivar properties: resolved and converted by the schema, defaults filled in; secrets in clear.
    :ivar previous: the properties last applied (update only), else empty.
    :ivar update_policy: resolved by the type's schema for it.
    :ivar data: stored by earlier steps of this resource; private to the plugin.
    :ivar key: idempotency key; the same for every repetition of this action, new for the next action.
    :ivar creation_key: the key of its creation, in later actions, too; empty: it was not created here.
    :ivar physical_id: id of the thing outside, None before it exists.
    :ivar attempt: grows with each start of the action; above 1 an earlier one may have made something.
    :ivar requested_attributes: attributes that others refer to, each with the constant path below it; of a
        NestedType that `has_member_attributes` only.
    """

    id: int
    name: str
    type: str
    stack: StackFacts
    properties: Mapping[str, Json]
    key: str
    physical_id: str | None = None
    attempt: int = 1
    metadata: Mapping[str, Json] = field(default_factory=dict)
    data: Mapping[str, Json] = field(default_factory=dict)
    previous: Mapping[str, Json] = field(default_factory=dict)
    update_policy: Mapping[str, Json] = field(default_factory=dict)
    requested_attributes: Sequence[Sequence[str | int]] = ()
    creation_key: str = ""

    @property
    def physical_name(self) -> str:
        """A name for the thing outside: STACK-RESOURCE-KEY, at most 255 characters."""
        return physical_name(self.stack.name, self.name, self.key)


@dataclass(frozen=True)
class Sibling:
    """Another resource of the same stack, as it is now.

    :ivar generation: grows with each change of the metadata.
    """

    id: int
    name: str
    physical_id: str | None
    metadata: Mapping[str, Json]
    generation: int


@dataclass(frozen=True)
class ReferencedResource:
    """Another resource of the same stack, to which a property refers.

    :ivar type: after the environment's mapping.
    :ivar data: stored by its steps, secrets in clear.
    """

    type: str
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class ReplacementView:
    """The resource that an update has made in the place of another one.

    :ivar type: of the resource; it may be another one.
    :ivar physical_id: None: nothing was made, or a lost attempt has made it with this `key`.
    :ivar data: values that its type has stored.
    """

    type: str
    key: str
    physical_id: str | None = None
    data: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class Presigned:
    """An address for signals to one resource; who knows the signature can do nothing else.

    :ivar endpoint: takes the signature as X-Auth-Token.
    :ivar signature: a secret.
    """

    endpoint: str
    signature: str = field(repr=False)

    @property
    def url(self) -> str:
        """The endpoint with the signature: a secret, too."""
        return f"{self.endpoint}?Signature={self.signature}"


@dataclass(frozen=True)
class StackUser:
    """An account of Stoker's own, by which clients of Keystone's and Heat's API act for one resource.

    Who has it can read the metadata of a server, or signal, and can do nothing else.

    :ivar auth_url: where Stoker itself answers as Keystone does; it needs none.
    :ivar password: a secret.
    :ivar stack_id: name and id of the stack, as the client needs them.
    """

    auth_url: str
    user_id: str
    password: str = field(repr=False)
    project_id: str
    stack_id: str
    resource_name: str


@dataclass(frozen=True)
class GuestAccess:
    """The means by which the agents in a server, its *guest*, read the metadata of the server's resource.

    Who has it can do nothing else.  It is valid as long as the row of the resource exists.

    :ivar metadata_url: of the CloudFormation API, for requests that are signed with the keys.
    :ivar secret_key: a secret.
    :ivar presigned: an address for GET; its signature is a secret, too.
    :ivar user: an account whose token is for the metadata.
    """

    stack_name: str
    resource_name: str
    metadata_url: str
    access_key: str
    secret_key: str = field(repr=False)
    presigned: Presigned
    user: StackUser


@dataclass(frozen=True)
class ChildGoal:
    """The goal of a nested stack.

    :ivar template: as text or as a dict.
    :ivar parameters: secrets in clear.
    :ivar timeout: seconds that an action of the child may take; None: the rest of the parent's.
    :ivar generated: the template was made by a resource type, of values: nothing in the properties and the
        metadata of its resources is a function, secrets are in clear, and its size is not limited.
    :ivar secret: names of parameters whose values hold secrets; the conductor fills it in.
    :ivar copies: how many resources like each of the template's the child will have; for static_goal.
    """

    template: str | Mapping[str, Json]
    parameters: Mapping[str, Json] = field(default_factory=dict)
    timeout: float | None = None
    generated: bool = False
    secret: frozenset[str] = frozenset()
    copies: int = 1


@dataclass(frozen=True)
class ChildFailure:
    """The first cause for which the action of a nested stack failed.

    :ivar message: the text of the error.
    :ivar kind: of the error, such as the name of its class.
    :ivar path: of the resource in the child that failed: ``resources.NAME…``; "" if none did.
    :ivar breakpoint: the resource in the child, ``NAME/…``, at whose breakpoint the action ended; "" if it
        failed for another reason.
    """

    message: str
    kind: str = "ResourceFailure"
    path: str = ""
    breakpoint: str = ""


@dataclass(frozen=True)
class ChildState:
    """The state of a nested stack now.

    :ivar traversal: id of its current traversal.
    :ivar failure: the cause, if the child FAILED; None: the reason is all that is known.
    """

    action: str
    status: str
    reason: str
    name: str = ""
    traversal: str = ""
    failure: ChildFailure | None = None

    @property
    def is_over(self) -> bool:
        """No action is in progress."""
        return self.status != "IN_PROGRESS"


@dataclass(frozen=True)
class GroupMember:
    """A resource of a child whose template was generated.

    :ivar definition: its body in the template, secrets in clear; None: the template no longer has it.
    :ivar reference: the value of get_resource; None: it is not created yet.
    :ivar created_at: seconds since the epoch.
    :ivar physical_id: None: it has none yet.
    """

    name: str
    definition: Mapping[str, Json] | None
    reference: Json = None
    is_failed: bool = False
    created_at: float = 0.0
    physical_id: str | None = None


@dataclass(frozen=True)
class RemoteCloud:
    """Another region of the cloud, or another cloud: as the properties of OS::Heat::Stack name it.

    :ivar region: None: the first one of the service catalog that has the service.
    """

    region: str | None = None
    credential_secret_id: str | None = None
    ca_cert: str | None = None
    insecure: bool = False


@dataclass(frozen=True)
class ChildInputs:
    """The inputs that a nested stack would get from the stack around it, without the operator's.

    :ivar environment: as the API takes it; secrets in clear.
    """

    files: Mapping[str, str]
    environment: Mapping[str, Json] = field(repr=False)


class Children(typing.Protocol):
    """Calls for the nested stacks of a resource, which a conductor offers to steps."""

    def create(self, key: str, goal: ChildGoal, adopted: Mapping[str, Json] | None = None) -> str:
        """Start to create a child; return its id, the same for the same `ResourceView.key`.

        :param adopted: what the child takes over, by resource, as the document of an exported stack has it;
            None: everything is created.
        :raises PermanentError: the goal is wrong, or too deep.
        """

    def update(self, child: str, goal: ChildGoal) -> None:
        """Start to update a child to another goal, whatever it does now.

        :raises PermanentError: the goal is wrong, or the child is being deleted.
        """

    def delete(self, child: str) -> None:
        """Start to delete a child; one that does not exist is ignored."""

    def act(self, child: str, action: str) -> None:
        """Start ``suspend``, ``resume`` or ``check``.

        :raises PermanentError: the child is not in a state for it.
        """

    def snapshot(self, child: str, key: str) -> None:
        """Start a snapshot of a child, or find the one that a step with this key has started.

        :raises PermanentError: the child is not in a state for it.
        """

    def snapshot_state(self, child: str, key: str) -> ChildState | None:
        """Return the state of that snapshot, None if it does not exist."""

    def delete_snapshot(self, child: str, key: str) -> None:
        """Start to delete that snapshot, whatever the child does; one that does not exist is ignored.

        :raises PermanentError: it is being taken.
        """

    def find(self, key: str) -> str | None:
        """Return the child that a step with this key has created, None if there is none."""

    def state(self, child: str) -> ChildState | None:
        """Return the state of a child, None if it is deleted or never existed."""

    def inner_values(self, child: str, requested: Sequence[Sequence[str | int]]) -> Mapping[str, Json]:
        """Return what others ask of the resources of a child, by the names of the attributes.

        :param requested: each begins with ``resource.NAME`` or ``resource.NAME.ATTRIBUTE``; the path follows.
        """

    def output_errors(self, child: str) -> Mapping[str, str]:
        """Return the errors of those outputs of a child that can never be computed, by name."""

    def outputs(self, child: str) -> Mapping[str, Json]:
        """Return the outputs of a child by name; None is the value of one that cannot be computed."""

    def members(self, child: str) -> Sequence[GroupMember]:
        """Return the members of a generated child: failed ones first, then by age and name."""

    def file(self, name: str) -> str:
        """Return the text of a file of the stack.

        :raises PermanentError: there is no such file.
        """

    def template(self, url: str) -> str:
        """Fetch the text of a template, from a host that the operator allows.

        :raises PermanentError: the address may not be asked, or has not answered with a template.
        """

    def inputs(self) -> ChildInputs:
        """Return what a child of the resource would get, for a stack that is made elsewhere."""


@dataclass(frozen=True)
class ConfigSpec:
    """A software config.

    :ivar inputs, outputs: as heat/software_io.py declares them; inputs of derived configs have values.
    """

    name: str | None = None
    group: str | None = None
    config: Json = None
    inputs: Sequence[Mapping[str, Json]] = ()
    outputs: Sequence[Mapping[str, Json]] = ()
    options: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True)
class DeploymentSpec:
    """The goal to which one action brings a deployment.

    :ivar key: of the action: the same for each of its attempts.
    :ivar derived: the config with the inputs' values, which the server's guest reads.
    :ivar waits: the deployment is in progress until the guest has signalled; else it is complete at once.
    """

    server_id: str
    action: str
    key: str
    derived: ConfigSpec
    input_values: Mapping[str, Json] = field(default_factory=dict)
    waits: bool = True


@dataclass(frozen=True)
class DeploymentState:
    """A deployment as it is now.

    :ivar derived: its config.
    :ivar generation: of the step's own resource, as in Sibling; read before the rest.
    """

    status: str
    reason: str
    outputs: Mapping[str, Json]
    derived: ConfigSpec
    generation: int


class Software(typing.Protocol):
    """Calls for software configs and deployments of the stack's project, which a conductor offers to steps.

    What others have marked as a secret in a value that is read is a secret in the step, too.
    """

    def config(self, config_id: str) -> ConfigSpec | None:
        """Return a config; None: the project has no such config."""

    def create_config(self, config_id: str, spec: ConfigSpec, *, made_of: Json = None) -> None:
        """Store a config of the step's resource; one that a lost attempt has stored stays as it is.

        :param made_of: values that it was made of.  Where a secret in them cannot be found in the config,
            because it is encoded there, the whole config is a secret.
        :raises PermanentError: the project has as many as it may have.
        """

    def delete_config(self, config_id: str) -> None:
        """Delete a config; one that does not exist is ignored.

        :raises PermanentError: a deployment refers to it.
        """

    def deploy(self, deployment_id: str, spec: DeploymentSpec) -> None:
        """Store a deployment of the step's resource, or bring the present one to another action.

        An action that a lost attempt has stored already stays as it is.

        :raises PermanentError: the project has as many as it may have.
        """

    def deployment(self, deployment_id: str) -> DeploymentState | None:
        """Return a deployment; None: it does not exist."""

    def delete_deployment(self, deployment_id: str) -> None:
        """Delete a deployment with its derived config; one that does not exist is ignored."""


class StepContext(typing.Protocol):
    """Calls that a conductor offers to a running step.  Only the step's thread may call them."""

    def now(self) -> float:
        """Return the seconds since the epoch, UTC."""

    def checkpoint(self) -> None:
        """Raise if the step is cancelled; long steps call it now and then.

        :raises Cancelled: the step must end; do not catch it.
        """

    def pause(self, seconds: float) -> None:
        """Sleep, but end early when the step is cancelled.

        :raises Cancelled: the step must end; do not catch it.
        """

    def sibling(self, name: str) -> Sibling:
        """Read another resource of the stack (one database read).

        :raises PermanentError: there is none of that name.
        """

    def referenced(self, physical_id: str) -> ReferencedResource | None:
        """Read the resource of the stack with this physical id (one database read); None: there is none."""

    def replacement(self) -> ReplacementView | None:
        """Return the resource that has replaced this one (one database read); None: there is none."""

    def signal_url(self, resource_name: str) -> str:
        """Return the URL for signals to a resource of this stack, for clients with a Keystone token."""

    def presigned(self) -> Presigned:
        """Return the address for signals to this resource, for clients without a token."""

    def signal_user(self) -> StackUser:
        """Return the account whose token is for signals to this resource."""

    def guest_access(self) -> GuestAccess:
        """Return the means by which the guest of this resource, a server, reads its metadata."""

    def session(self) -> "Session":
        """Return a keystoneauth session of the stack's user in the stack's project.

        It works after their token has expired.  For types with `uses_credentials`.

        :raises PermanentError: the stack has no credential, or Keystone refuses it.
        :raises RetryableError: Keystone is unavailable.
        """

    def adapter(self, service: str, version: str, microversion: str | None = None) -> "Adapter":
        """Return the endpoint of a service of the cloud, for calls with the rights of `session`.

        :param service: its type in the service catalog.
        :param version: the major version of its interface.
        :param microversion: the newest that the caller knows; an older service gets its own newest.
        :raises PermanentError: the stack has no credential, or the cloud no such service.
        :raises RetryableError: Keystone or the service is unavailable.
        """

    def remote_adapter(
        self, cloud: RemoteCloud, service: str, version: str, credential: Callable[[], Json]
    ) -> "Adapter":
        """Return the endpoint of a service in another region or cloud.

        :param credential: reads that of the other cloud; it is kept in memory for minutes, and never stored.
        :raises PermanentError: the credential, the certificates or the region are wrong.
        :raises RetryableError: it is unavailable.
        """

    def shared(
        self, key: Hashable, make: Callable[[], T], max_age: float, *, checked_by_use: bool = False
    ) -> T:
        """Return what `make` returned for this key and the stack's project, at most `max_age` seconds ago.

        All steps of a process share it.  While another step makes it, the one before is returned; if
        there is none, the step waits.

        :param make: what it raises is raised; nothing is kept then.
        :param checked_by_use: a step that fails with a kept value runs once more, with a new one.
        """

    @property
    def children(self) -> Children:
        """The nested stacks of the resource."""

    @property
    def software(self) -> Software:
        """The software configs and deployments of the stack's project."""
