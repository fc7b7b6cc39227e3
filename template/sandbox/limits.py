"""Limits of one evaluation, and of the helper processes together."""

from dataclasses import dataclass

MIB = 1024 * 1024
WALL_CLOCK = 4.0
"""Time by the clock that an evaluation may take, as a multiple of its CPU time.  An endless
computation reaches the limit of CPU time first.  This one ends an evaluation that gets no processor, and is
generous so that no small one fails on a crowded host."""


@dataclass(frozen=True)
class HelperLimits:
    """Limits of the evaluations of one pool.

    :ivar seconds: seconds of CPU time for one evaluation; by the clock it has WALL_CLOCK times as many.
    :ivar total: seconds of CPU time for all evaluations of one request, or of one step of a resource,
        together.
    :ivar memory: bytes of address space that an evaluation may take beyond those of an idle helper.
    :ivar processes: evaluations that run at the same time; one project's are half as many at the most.
    :ivar limit_iterators: items that YAQL takes from one iterator.
    :ivar memory_quota: bytes that YAQL counts for one collection or text.
    :ivar message: bytes of an expression with its data, and of a result, as JSON.
    """

    seconds: float = 1.0
    total: float = 1.5
    memory: int = 64 * MIB
    processes: int = 4
    limit_iterators: int = 2000
    memory_quota: int = 1_000_000
    message: int = 2 * MIB
