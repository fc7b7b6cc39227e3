"""Options of the limits of one request, in [stacks]."""

from oslo_config import cfg

from ...engine.quotas import UNLIMITED, QuotaName, Quotas, SoftwareLimits
from ...template.budget import BudgetLimits

_DEFAULT = BudgetLimits()
STACK_LIMITS = [
    cfg.IntOpt(
        "max_template", default=524288, min=0, help="Maximum size of a template in bytes; 0: no limit."
    ),
    cfg.IntOpt(
        "max_resources",
        default=10000,
        min=0,
        help="Maximum number of resources of a stack with all stacks nested in it; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_depth",
        default=30,
        min=0,
        help="Maximum number of levels of nested stacks; TripleO has 7. 0, or more than 50: 50.",
    ),
    cfg.IntOpt(
        "max_tree_rows",
        default=100000,
        min=0,
        help="Maximum number of resources of a stack and those nested in it that one request reads: for an "
        "export, to abandon or restore a stack, for a preview of an update. A request for more is refused "
        "with 400; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_tree_bytes",
        default=67108864,
        min=0,
        help="Maximum size in bytes of the goals and values that such a request reads. In an export, each "
        "nested stack repeats the files of the stack. A request for more is refused with 400; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_compile_steps",
        default=_DEFAULT.steps,
        min=0,
        help="Maximum number of steps, of about a microsecond each, to compile the template, the "
        "environment and the nested templates of one request. A flat stack of 10,000 resources "
        "takes a few hundred thousand. A request that needs more is refused with 400; 0: no "
        "limit.",
    ),
    cfg.IntOpt(
        "max_compile_bytes",
        default=_DEFAULT.bytes,
        min=0,
        help="Maximum size in bytes of all values that one request computes and stores: the results of "
        "functions, and the properties, metadata and outputs of all resources. Such a request "
        "needs about twice as much memory. A request that needs more is refused with 400; 0: no "
        "limit.",
    ),
    cfg.FloatOpt(
        "max_compile_seconds",
        default=_DEFAULT.seconds,
        min=0,
        help="Seconds of processor time that one request may take to compile, for work that is not "
        "counted in steps. Other load of the machine does not count. A request that needs more is "
        "refused with 400; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_stacks_per_project",
        default=512,
        min=-1,
        deprecated_name="max_stacks_per_tenant",
        help="Maximum number of stacks of a project, without nested ones; one above it is refused. An admin "
        "may create more. 0 or -1: no limit. This, and each other maximum of a project, is the default of a "
        "quota: `stoker-manage quota set` gives a project another one.",
    ),
    cfg.IntOpt(
        "max_resources_per_project",
        default=100000,
        min=0,
        help="Maximum number of resources of a project's stacks, with those of nested stacks. A request for "
        "more is refused. A nested stack whose size the request could not know fails if it exceeds the "
        "limit. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_snapshots_per_project",
        default=1024,
        min=0,
        help="Maximum number of snapshots of a project's stacks; one above it is refused. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_goals_of_project",
        default=1073741824,
        min=0,
        help="Maximum size in bytes of the templates, environments, files and parameters of a project's "
        "stacks and of their snapshots, as JSON. A request for more is refused. 0: no limit.",
    ),
    cfg.ListOpt(
        "hidden_stack_tags",
        default=[],
        help="Tags, separated by commas, whose stacks lists omit, unless the user asks for hidden stacks, "
        "too (`--hidden`). They hide nothing else: such a stack can be shown and changed by its name.",
    ),
    cfg.IntOpt(
        "max_snapshots", default=32, min=0, help="Maximum number of snapshots of a stack; 0: no limit."
    ),
    cfg.IntOpt(
        "max_software_configs_per_project",
        default=4096,
        min=0,
        help="Maximum number of software configs of a project, with those that its deployments have made; "
        "one above it is refused, or fails its resource; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_software_deployments_per_project",
        default=4096,
        min=0,
        help="Maximum number of software deployments of a project; one above it is refused, or fails its "
        "resource; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_software_config",
        default=2097152,
        min=0,
        help="Maximum size of a software config in bytes, as JSON with its inputs, outputs and options. A "
        "larger one is refused, or fails its resource; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_software_deployment",
        default=1048576,
        min=0,
        help="Maximum size in bytes of the values of a software deployment's inputs, as JSON, and of its "
        "outputs, where a user gives them. max_signal_total limits outputs that servers signal. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_software_of_server",
        default=8388608,
        min=0,
        help="Maximum size in bytes of all configs that are deployed to one server. Its agent reads them at "
        "once, and the API needs ten times as much memory for that. A deployment above it is refused, or "
        "fails its resource; 0: no limit.",
    ),
    cfg.IntOpt(
        "max_software_of_project",
        default=268435456,
        min=0,
        help="Maximum size in bytes of all software configs of a project with the values of its deployments. "
        "What is above it is refused, or fails its resource; 0: no limit.",
    ),
]


def quotas(conf: cfg.ConfigOpts) -> Quotas:
    """Return the quotas of projects."""
    section = conf.stacks
    defaults = {
        QuotaName.STACKS: section.max_stacks_per_project,
        QuotaName.RESOURCES: section.max_resources_per_project,
        QuotaName.SNAPSHOTS: section.max_snapshots_per_project,
        QuotaName.GOAL_BYTES: section.max_goals_of_project,
        QuotaName.SOFTWARE_CONFIGS: section.max_software_configs_per_project,
        QuotaName.SOFTWARE_DEPLOYMENTS: section.max_software_deployments_per_project,
        QuotaName.SOFTWARE_BYTES: section.max_software_of_project,
    }
    return Quotas({name: limit if limit > 0 else UNLIMITED for name, limit in defaults.items()})


def software_limits(conf: cfg.ConfigOpts) -> SoftwareLimits:
    """Return the limits of software configs and deployments."""
    section = conf.stacks
    return SoftwareLimits(
        config_bytes=section.max_software_config,
        deployment_bytes=section.max_software_deployment,
        server_bytes=section.max_software_of_server,
        quotas=quotas(conf),
    )


def budget_limits(conf: cfg.ConfigOpts) -> BudgetLimits:
    """Return the limits of the work that one request may cause."""
    section = conf.stacks
    return BudgetLimits(section.max_compile_bytes, section.max_compile_steps, section.max_compile_seconds)
