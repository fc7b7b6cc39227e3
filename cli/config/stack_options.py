"""Options of [stacks]: signals, the loss of conductors, and the rights that users delegate."""

from oslo_config import cfg

from ...db.work.losses import USUAL_MOST
from ...engine.signal_limits import SignalLimits
from .environment_options import ENVIRONMENTS
from .limit_options import STACK_LIMITS

_DEFAULT = SignalLimits()
SIGNALS = [
    cfg.IntOpt(
        "max_signal_size",
        default=_DEFAULT.size,
        min=0,
        help="Maximum size of a signal to a resource, in bytes. 0: only [api] max_body limits it.",
    ),
    cfg.IntOpt(
        "max_signals",
        default=_DEFAULT.kept,
        min=0,
        help="Maximum number of signals that a wait condition handle keeps; a wait condition cannot "
        "wait for more. A signal whose id is known replaces the earlier one. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_signal_total",
        default=_DEFAULT.total,
        min=0,
        help="Maximum size in bytes of all signals that a wait condition handle keeps. Each further "
        "signal reads and writes all of them. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_signal_reason",
        default=_DEFAULT.reason,
        min=0,
        help="Maximum number of characters of a reason: the one of a signal, with its status, and the "
        "one with which a resource is marked unhealthy. It becomes part of an event. 0: no limit.",
    ),
]
TASK_LOSSES = [
    cfg.IntOpt(
        "task_losses",
        default=USUAL_MOST,
        min=2,
        help="Number of conductors that may die or go silent while they run the same task; then its resource "
        "fails. A lower number protects conductors from a step that kills them, a higher one protects a "
        "step that only ran beside it. An orderly stop does not count. At least 2: one loss does not "
        "show which task caused it.",
    ),
]
DEFERRED = [
    cfg.StrOpt(
        "deferred_auth_method",
        default="trusts",
        help="Method by which Stoker acts for a user after the user's token has expired. trusts: by a trust "
        "per stack, from its user to the account of [trustee], or of [keystone_authtoken] if [trustee] "
        "names none. none: resource types that need it cannot work. Entry points add other methods. "
        "Without Keystone, or while no installed resource type needs it, nothing is delegated and "
        "Keystone is not asked.",
    ),
    cfg.ListOpt(
        "trusts_delegated_roles",
        default=[],
        help="Names of the roles to delegate. Empty: all roles that the user has in the project. With "
        "fewer a stack may do less.",
    ),
    cfg.BoolOpt(
        "allow_trusts_redelegation",
        default=False,
        help="Whether further trusts can be made with the trust of a stack, as deep as Keystone allows. "
        "Stacks in another region (`region_name` of OS::Heat::Stack) need it: the orchestration service "
        "there makes a trust of its own. So do alarms with queues, for which Aodh makes one. False: a "
        "service that gets a token of the trust cannot act longer than the token. Stacks that exist "
        "already keep their trusts.",
    ),
]
MORE_OF_STACKS = [*STACK_LIMITS, *ENVIRONMENTS, *SIGNALS, *TASK_LOSSES, *DEFERRED]


def signal_limits(conf: cfg.ConfigOpts) -> SignalLimits:
    """Return the limits of signals."""
    section = conf.stacks
    return SignalLimits(
        section.max_signal_size, section.max_signals, section.max_signal_total, section.max_signal_reason
    )
