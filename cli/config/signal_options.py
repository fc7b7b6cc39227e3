"""Options: how much signals may bring."""

from oslo_config import cfg

from ...engine.signal_limits import SignalLimits

_USUAL = SignalLimits()
SIGNALS = [
    cfg.IntOpt(
        "max_signal_size",
        default=_USUAL.size,
        min=0,
        help="Bytes of a signal to a resource, at the most. 0: no limit but [api] max_body.",
    ),
    cfg.IntOpt(
        "max_signals",
        default=_USUAL.kept,
        min=0,
        help="Signals that a wait condition handle keeps, at the most: a wait condition cannot wait for "
        "more. A signal with an id that is there already replaces that one. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_signal_total",
        default=_USUAL.total,
        min=0,
        help="Bytes of all signals that a wait condition handle keeps, at the most. Each further signal "
        "reads and writes all of them. 0: no limit.",
    ),
    cfg.IntOpt(
        "max_signal_reason",
        default=_USUAL.reason,
        min=0,
        help="Characters of the reason that a signal gives, with its status, or of that for which a resource "
        "is marked unhealthy, at the most: it is part of an event. 0: no limit.",
    ),
]


def signal_limits(conf: cfg.ConfigOpts) -> SignalLimits:
    """Return them."""
    given = conf.stacks
    return SignalLimits(
        given.max_signal_size, given.max_signals, given.max_signal_total, given.max_signal_reason
    )
