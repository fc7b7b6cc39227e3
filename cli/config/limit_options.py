"""Options for how much one request may ask for; a part of [stacks]."""

from oslo_config import cfg

from ...template.budget import BudgetLimits

STACK_LIMITS = [
    cfg.IntOpt("max_template", default=524288, min=0, help="Bytes of a template, at the most; 0: no limit."),
    cfg.IntOpt("max_resources", default=10000, min=0, help="Resources of a stack, at the most; 0: no limit."),
    cfg.IntOpt("max_depth", default=5, min=0, help="Levels of nested stacks, at the most; 0: no limit."),
    cfg.IntOpt(
        "max_compile_steps",
        default=BudgetLimits().steps,
        min=0,
        help="Steps of work, of about a microsecond each, that compiling the template, the environment and "
        "the nested templates of one request may take. A flat stack of 10,000 resources takes a few hundred "
        "thousand. A request that needs more is refused with 400; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_compile_bytes",
        default=BudgetLimits().bytes,
        min=0,
        help="Bytes of all values that one request may compute and store: what its functions make, and the "
        "properties, metadata and outputs of all of its resources. Processes need about twice as much memory "
        "for such a request. A request that needs more is refused with 400; 0: no limit.",
    ),
    cfg.FloatOpt(
        "max_compile_seconds",
        default=BudgetLimits().seconds,
        min=0,
        help="Seconds of processor time that compiling one request may take, for work that is not counted "
        "in steps. Other load of the machine does not count. A request that needs more is refused with 400; "
        "0: no limit.",
    ),
    cfg.IntOpt("max_snapshots", default=0, min=0, help="Snapshots of a stack, at the most; 0: no limit."),
]
