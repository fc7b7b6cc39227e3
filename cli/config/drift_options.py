"""Options of [drift]: the observation of what users change in the cloud behind their stacks."""

from oslo_config import cfg

from ...features.drift.rows import DriftSettings

DRIFT = [
    cfg.BoolOpt(
        "enabled",
        default=False,
        help="Whether conductors observe drift: resources that are gone from the cloud, or differ from their "
        "templates. Each interval costs lists of each project's resources.",
    ),
    cfg.FloatOpt(
        "interval",
        default=3600.0,
        min=60.0,
        help="Seconds between two observations of a project's stacks, and minimum seconds between two "
        "healings of a stack. A shorter interval detects drift sooner, and sends more requests to the "
        "services.",
    ),
    cfg.BoolOpt(
        "heal",
        default=True,
        help="Whether stacks whose environments ask for it heal themselves by an update. False: their "
        "drift is only reported.",
    ),
]


def drift_settings(conf: cfg.ConfigOpts) -> DriftSettings:
    """Return the settings of [drift]."""
    return DriftSettings(conf.drift.enabled, conf.drift.interval, conf.drift.heal)
