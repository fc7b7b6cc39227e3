"""The faults that `make mutate` plants, and how they reach code that is loaded already."""

import dataclasses
import os
import subprocess
import sys
import textwrap
import time

import pytest
from mutate import kernel, planting
from mutate.operators import Mutant, mutants
from mutate.trying import Job, Outcome, attempt
from stoker.ring import timing

FAULTS = [
    ("a < b", {"(a <= b)"}),
    ("a is not None", {"(a is None)"}),
    ("a and b", {"(a)", "(b)"}),
    ("a or b or c", {"(b or c)", "(a or c)", "(a or b)"}),
    ("not a", {"(a)"}),
    ("a + 1", {"(a - 1)", "2"}),
    ("'text' + a", set()),
    ("True", {"False"}),
    ("min(a)", {"max"}),
    ("[a for a in b if c]", {"True"}),
    ("a if b else c", {"(not (b))"}),
    ("q.where(a, b)", {"(q.where(b))", "(q.where(a))"}),
    ("q.where(a)", {"(q)"}),
    ("sa.and_(a, b)", {"(sa.and_(b))", "(sa.and_(a))"}),
    ("q.with_for_update(skip_locked=a)", {"(q)", "(q.with_for_update())"}),
    ("c.in_(a)", {"__import__('sqlalchemy').true()"}),
    ("LOG.info(1)", set()),
    ("f'{a + 1}'", set()),
]  # fmt: skip


@pytest.mark.parametrize(("text", "changes"), FAULTS)
def test_the_faults_of_an_expression(text: str, changes: set[str]) -> None:
    faults = mutants("x.py", f"def f():\n    yield {text}\n")
    assert {fault.after for fault in faults} == changes
    for fault in faults:
        compile(fault.apply(f"def f():\n    yield {text}\n".encode()), "x.py", "exec")


STATEMENTS = textwrap.dedent(
    """
    LIMIT: int = 3

    def f(a: int = 1):
        \"\"\"Text.\"\"\"
        g(a)
        while a:
            a += b
            break
        raise ValueError(a + 1)

    class C:
        def m(self):
            return self.x
    """
)


def test_the_faults_of_statements_with_their_places() -> None:
    faults = {(fault.scope, fault.operator, fault.after) for fault in mutants("x.py", STATEMENTS)}
    assert faults == {
        ("", "number", "4"),
        ("f", "statement", "pass"),
        ("f", "condition", "(not (a))"),
        ("f", "arithmetic", "a -= b"),
        ("f", "jump", "continue"),
        ("C.m", "result", "return None"),
    }


def test_a_fault_is_known_by_its_text_wherever_it_lies() -> None:
    text = "def f(a):\n    return a < 1, a < 1\n"
    keys = [fault.key for fault in mutants("x.py", text)]
    assert len(set(keys)) == len(keys)
    assert [fault.key for fault in mutants("x.py", "\n\n" + text)] == keys


def timing_fault(scope: str, operator: str) -> Mutant:
    path = "ring/timing.py"
    faults = mutants(path, (planting.ROOT / path).read_text())
    return next(fault for fault in faults if (fault.scope, fault.operator) == (scope, operator))


def test_a_fault_changes_code_that_is_loaded(request: pytest.FixtureRequest) -> None:
    getter = timing.MembershipTiming.self_stop.fget
    code = getter.__code__
    request.addfinalizer(lambda: setattr(getter, "__code__", code))
    assert timing.MembershipTiming().self_stop == 3.5
    planting.plant(timing_fault("MembershipTiming.self_stop", "result"))
    assert timing.MembershipTiming().self_stop is None


def test_what_runs_at_loading_needs_a_process_that_has_not_loaded_it() -> None:
    loaded = timing_fault("", "number")
    with pytest.raises(planting.NotPlanted):
        planting.plant(loaded)
    script = f"""
from mutate import planting
from mutate.operators import Mutant
planting.load({loaded!r})
from stoker.ring import timing
print(timing.LONGEST_HEARTBEAT)
"""
    env = {**os.environ, "PYTHONPATH": str(planting.ROOT / "tests")}
    command = [sys.executable, "-c", script]
    printed = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    assert (timing.LONGEST_HEARTBEAT, printed) == (10.0, "11.0\n")


def test_a_fork_ends_with_all_that_it_has_started() -> None:
    job = Job(timing_fault("", "number"), [], seconds=0.2)
    assert attempt(job, lambda: time.sleep(60) or 0)[0] == Outcome.ENDLESS
    assert attempt(dataclasses.replace(job, seconds=60.0), lambda: 0)[0] == Outcome.LIVES
    assert attempt(dataclasses.replace(job, seconds=60.0), lambda: 1 // 0)[0] == Outcome.NOTICED


def test_each_module_of_the_kernel_belongs_to_a_row() -> None:
    assert {kernel.row_of(path) for path in kernel.sources()} == set(kernel.KERNEL)
