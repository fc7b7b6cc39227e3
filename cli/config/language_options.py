"""Options of the template language: users' expressions, and CloudFormation's format."""

from oslo_config import cfg

from ...template.compile import Region
from ...template.sandbox.limits import MIB, WALL_CLOCK, HelperLimits

_DEFAULT = HelperLimits()
_REGION = Region()
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

CFN = [
    cfg.StrOpt(
        "region",
        default=_REGION.name,
        help="Value of AWS::Region in templates in CloudFormation's format. Heat's is always the default, "
        "which public templates use as a key of their mappings.",
    ),
    cfg.ListOpt(
        "availability_zones",
        default=list(_REGION.zones),
        help="Names of Nova's availability zones in the order in which Fn::GetAZs lists them. Heat asks "
        "Nova at each use. A change takes effect at the next creation or update of a stack.",
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


def region(conf: cfg.ConfigOpts) -> Region:
    """Return the cloud as these templates see it."""
    return Region(conf.cfn.region, tuple(conf.cfn.availability_zones))
