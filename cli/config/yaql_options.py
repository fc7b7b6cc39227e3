"""Options of the evaluation of users' expressions."""

from oslo_config import cfg

from ...sandbox.limits import MIB, WALL_CLOCK, HelperLimits

_DEFAULT = HelperLimits()
YAQL = [
    cfg.IntOpt(
        "limit_iterators",
        default=_DEFAULT.limit_iterators,
        min=1,
        help="Maximum number of items that an expression may take from one collection.",
    ),
    cfg.IntOpt(
        "memory_quota",
        default=_DEFAULT.memory_quota,
        min=1000,
        help="Maximum number of bytes that YAQL counts for one value in an expression.",
    ),
    cfg.FloatOpt(
        "timeout",
        default=_DEFAULT.seconds,
        min=0.01,
        help="Maximum CPU seconds to evaluate an expression, or to match an allowed_pattern with a value; "
        f"{WALL_CLOCK:g} times as many by the clock. Then the helper process is killed. Longer lets one "
        "request occupy a processor for longer.",
    ),
    cfg.FloatOpt(
        "total_timeout",
        default=_DEFAULT.total,
        min=0.01,
        help="Seconds of CPU time that all expressions of one request, or of one step of a resource, "
        "may take together. Longer lets one request occupy a processor for longer.",
    ),
    cfg.IntOpt(
        "memory",
        default=_DEFAULT.memory,
        min=8 * MIB,
        help="Maximum address space of an expression in bytes, beyond that of an idle helper process.",
    ),
    cfg.IntOpt(
        "processes",
        default=_DEFAULT.processes,
        min=1,
        max=256,
        help="Maximum number of helper processes of each API and conductor process, and so of "
        "expressions evaluated at the same time; those of one project use half of them. Each "
        "takes about 5 MB while idle.",
    ),
]


def helper_limits(conf: cfg.ConfigOpts) -> HelperLimits:
    """Return the limits that the configuration sets."""
    section = conf.yaql
    return HelperLimits(
        seconds=section.timeout,
        total=section.total_timeout,
        memory=section.memory,
        processes=section.processes,
        limit_iterators=section.limit_iterators,
        memory_quota=section.memory_quota,
    )
