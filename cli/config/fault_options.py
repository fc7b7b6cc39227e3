"""Options that bound the damage of one task or conductor."""

from oslo_config import cfg

from ...db.work.losses import USUAL_MOST

TASK_LOSSES = [
    cfg.IntOpt(
        "task_losses",
        default=USUAL_MOST,
        min=2,
        help="Number of conductors that may die or go silent while they run the same task; then its "
        "resource fails. Lower protects conductors from a step that kills them, higher protects a "
        "step that only ran beside such a one. An orderly stop does not count. At least 2: one "
        "loss does not show which task caused it.",
    ),
]
