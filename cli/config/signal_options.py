"""Options of the size and number of signals."""

from oslo_config import cfg

from ...engine.signal_limits import SignalLimits

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


def signal_limits(conf: cfg.ConfigOpts) -> SignalLimits:
    """Return the limits of signals."""
    section = conf.stacks
    return SignalLimits(
        section.max_signal_size, section.max_signals, section.max_signal_total, section.max_signal_reason
    )
