"""Limits of one evaluation, and of the helper processes together."""

from dataclasses import dataclass

from ...settings import Bytes, Seconds, setting

MIB = 1024 * 1024
WALL_CLOCK = 4.0
"""Time by the clock that an evaluation may take, as a multiple of its CPU time.  An endless
computation reaches the limit of CPU time first.  This one ends an evaluation that gets no processor, and is
generous so that no small one fails on a crowded host."""


@dataclass(frozen=True)
class HelperLimits:
    """Limits of the evaluations of one pool.

    :ivar message: bytes of an expression with its data, and of a result, as JSON.
    """

    limit_iterators: int = setting(
        "limit_iterators",
        2000,
        "Maximum number of items that an expression may take from one collection.",
        least=1,
    )
    memory_quota: Bytes = setting(
        "memory_quota",
        1_000_000,
        "Maximum number of bytes that YAQL counts for one value in an expression.",
        least=1000,
    )
    seconds: Seconds = setting(
        "timeout",
        1.0,
        "Maximum CPU seconds to evaluate an expression, or to match an allowed_pattern with a value; "
        f"{WALL_CLOCK:g} times as many by the clock. Then the helper process is killed. Longer lets one "
        "request occupy a processor for longer.",
        least=0.01,
    )
    total: Seconds = setting(
        "total_timeout",
        1.5,
        "Seconds of CPU time that all expressions of one request, or of one step of a resource, may take "
        "together. Longer lets one request occupy a processor for longer.",
        least=0.01,
    )
    memory: Bytes = setting(
        "memory",
        64 * MIB,
        "Maximum address space of an expression in bytes, beyond that of an idle helper process.",
        least=8 * MIB,
    )
    processes: int = setting(
        "processes",
        4,
        "Maximum number of helper processes of each API and conductor process, and so of expressions "
        "evaluated at the same time; those of one project use half of them. Each takes about 5 MB while "
        "idle.",
        least=1,
        most=256,
    )
    message: int = 2 * MIB
