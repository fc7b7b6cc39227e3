"""Options of what is evaluated for users."""

from oslo_config import cfg

from ...sandbox.limits import MIB, WALL_CLOCK, HelperLimits

_DEFAULT = HelperLimits()
YAQL = [
    cfg.IntOpt(
        "limit_iterators",
        default=_DEFAULT.limit_iterators,
        min=1,
        help="Items that an expression may take from one collection.",
    ),
    cfg.IntOpt(
        "memory_quota",
        default=_DEFAULT.memory_quota,
        min=1000,
        help="Bytes that YAQL counts for one value in an expression, at the most.",
    ),
    cfg.FloatOpt(
        "timeout",
        default=_DEFAULT.seconds,
        min=0.01,
        help="Seconds of CPU time in which an expression must be evaluated, or an allowed_pattern tried on a "
        f"value; {WALL_CLOCK:g} times as many by the clock. Then its helper process is killed. Longer lets "
        "one request take a processor for longer.",
    ),
    cfg.FloatOpt(
        "total_timeout",
        default=_DEFAULT.total,
        min=0.01,
        help="Seconds of CPU time that all expressions of one request, or of one step of a resource, may "
        "take together.",
    ),
    cfg.IntOpt(
        "memory",
        default=_DEFAULT.memory,
        min=8 * MIB,
        help="Bytes of address space that an expression may take, beyond those of an idle helper process.",
    ),
    cfg.IntOpt(
        "processes",
        default=_DEFAULT.processes,
        min=1,
        max=256,
        help="Helper processes of each API and conductor process, and so expressions that are evaluated at "
        "the same time, at the most; those of one project take half of them. Each takes about 5 MB while "
        "idle.",
    ),
]


def helper_limits(conf: cfg.ConfigOpts) -> HelperLimits:
    """Return the limits that the configuration sets."""
    wanted = conf.yaql
    return HelperLimits(
        seconds=wanted.timeout,
        total=wanted.total_timeout,
        memory=wanted.memory,
        processes=wanted.processes,
        limit_iterators=wanted.limit_iterators,
        memory_quota=wanted.memory_quota,
    )
