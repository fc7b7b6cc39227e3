"""Options that bound what a fault of one task or conductor costs."""

from oslo_config import cfg

from ...db.work.losses import USUAL_MOST

TASK_LOSSES = [
    cfg.IntOpt(
        "task_losses",
        default=USUAL_MOST,
        min=2,
        help="Conductors that may die or go silent while the same task runs; then its resource fails. Lower "
        "spares conductors from a step that kills them, higher spares a step that ran beside that one. An "
        "orderly stop does not count. At least 2: one loss does not say which task was to blame.",
    ),
]
