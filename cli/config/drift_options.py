"""Options of [drift]: the observation of what users change in the cloud behind their stacks."""

from oslo_config import cfg

DRIFT = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Whether conductors observe drift: what of the stacks is gone from the cloud, or differs "
        "from their templates. It costs lists of each project's things once in an interval.",
    ),
    cfg.FloatOpt(
        "interval",
        default=3600.0,
        min=60.0,
        help="Seconds in which the stacks of a project are observed once, and least seconds "
        "between two healings of a stack. Shorter sees drift sooner, and asks the services more often.",
    ),
    cfg.BoolOpt(
        "heal",
        default=True,
        help="Whether stacks whose environments ask for it heal themselves by an update. False: their "
        "drift is only reported.",
    ),
]
