"""The faults that `make mutate` plants, and how they reach code that is loaded already."""

import dataclasses
import os
import signal
import subprocess
import sys
import textwrap
import time
import typing

import pytest
from mutate import choosing, kernel, planting, survivors
from mutate.__main__ import LEAST_TIME, LOADING_TIME, loaded, options_of
from mutate.constants import dependents, loaded_names
from mutate.databases import DATABASES, ON_EACH, is_repeated
from mutate.forks import CANNOT, FAILS, SURVIVES, End, attempt
from mutate.notes import Notes
from mutate.operators import Mutant, mutants
from mutate.recording import scaled
from mutate.verdicts import SLOWER, Job, Outcome, Run, Verdicts
from stoker.db.work import transitions
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
    ("c.is_(a)", {"(c.is_not(a))"}),
    ("sa.not_(a)", {"(a)"}),
    ("~a", {"(a)"}),
    ("a | b", {"(a)", "(b)"}),
    ("q.values(a=b, c=d)", {"(q.values(c=d))", "(q.values(a=b))"}),
    ("'role:a and b:c'", {"'role:a'", "'b:c'"}),
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


def timing_fault(scope: str, operator: str, count: int = 0) -> Mutant:
    path = "ring/timing.py"
    faults = mutants(path, (planting.ROOT / path).read_text())
    return [fault for fault in faults if (fault.scope, fault.operator) == (scope, operator)][count]


def test_a_fault_changes_code_that_is_loaded(request: pytest.FixtureRequest) -> None:
    getter = timing.MembershipTiming.self_stop.fget
    code = getter.__code__
    request.addfinalizer(lambda: setattr(getter, "__code__", code))
    assert timing.MembershipTiming().self_stop == 3.5
    planting.plant(timing_fault("MembershipTiming.self_stop", "result"))
    assert timing.MembershipTiming().self_stop is None


def test_what_runs_at_loading_needs_a_process_that_has_not_loaded_it() -> None:
    loaded = timing_fault("MembershipTiming", "number", 2)
    with pytest.raises(planting.NotPlanted):
        planting.plant(loaded)
    script = f"""
from mutate import planting
from mutate.operators import Mutant
planting.load({loaded!r})
from stoker.ring import timing
print(timing.MembershipTiming().poll)
"""
    env = {**os.environ, "PYTHONPATH": str(planting.ROOT / "tests")}
    command = [sys.executable, "-c", script]
    printed = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout
    assert (timing.MembershipTiming().poll, printed) == (1.5, "2.5\n")


def test_a_constant_is_assigned_again_with_what_follows_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    path = "db/work/transitions.py"
    faults = mutants(path, (planting.ROOT / path).read_text())
    [fault, *_] = [each for each in faults if each.operator == "column" and each.before.startswith("HOLD.")]
    for name in ("_HOLD", "HOLD"):
        monkeypatch.setattr(transitions, name, getattr(transitions, name))
    before = transitions.HOLD, str(transitions._HOLD)
    planting.plant(fault)
    assert transitions.HOLD is before[0]
    assert "pending=" in before[1]
    assert "pending=" not in str(transitions._HOLD)


CONSTANTS = textwrap.dedent(
    """
    A = 1
    B = A + 1

    def f():
        return B

    C = f()
    D = 3

    class K:
        limit: int = D
    """
)


def test_what_follows_from_a_constant() -> None:
    depending = dependents(CONSTANTS, 2)
    assert depending is not None
    assert (depending.names, depending.lines) == ({"A", "B", "C"}, {5, 6})
    assert dependents(CONSTANTS, 9) is None  # A class has it already.
    of_function = dependents(CONSTANTS, 6)
    assert of_function is not None
    assert (of_function.names, of_function.lines) == ({"C"}, {5, 6})
    of_method = dependents("class K:\n    def m(self):\n        return 1\n\nA = K().m()\n", 3)
    assert of_method is not None
    assert of_method.names == {"A"}


def test_a_function_that_is_called_at_loading_reads_its_names_then() -> None:
    functions = "def f():\n    return g()\n\ndef g():\n    return B\n\ndef h():\n    return C\n"
    text = f"from a import B, C\n\n{functions}\nD = f()\n"
    assert loaded_names(text) == {"D", "f", "g", "B"}


@pytest.mark.parametrize(
    ("run", "end"),
    [
        (lambda tell: SURVIVES, End.SURVIVED),
        (lambda tell: 1 // 0, End.FAILED),
        (lambda tell: os.kill(os.getpid(), signal.SIGKILL), End.FAILED),
        (lambda tell: CANNOT, End.CANNOT),
        (lambda tell: tell("a") or time.sleep(60) or 0, End.LATE),
    ],
)
def test_the_ends_of_a_fork(run: typing.Any, end: End) -> None:
    trial = attempt(run, seconds=0.5 if end == End.LATE else 60.0, processor=60.0)
    assert (trial.end, trial.test) == (end, "a" if end == End.LATE else "")


def test_a_loop_ends_by_the_time_of_the_processor() -> None:
    assert attempt(lambda tell: all(iter(int, 1)) or loop(), seconds=600.0, processor=0.5).end == End.COMPUTES


def loop() -> typing.NoReturn:
    while True:
        pass


FAULT = timing_fault("MembershipTiming.self_stop", "result")


def test_a_fault_whose_module_has_changed_meanwhile_is_not_tried() -> None:
    moved = dataclasses.replace(FAULT, begin=FAULT.begin + 1)
    assert Verdicts(fails_at("a")).of(Job(moved, ["a"], seconds=1.0)).outcome == Outcome.UNDECIDED


def fails_at(name: str, *, only_with_a_fault: bool = True) -> Run:
    """Return a run of which this test fails, and only that."""

    def run(mutant: Mutant | None, tests: list[str], tell: typing.Callable[[str], None]) -> int:
        for test in tests:
            tell(test)
            if test == name and (mutant is not None or not only_with_a_fault):
                return FAILS
        return SURVIVES

    return run


def sleeps(*, with_a_fault: bool, without: bool) -> Run:
    def run(mutant: Mutant | None, tests: list[str], tell: typing.Callable[[str], None]) -> int:
        tell(tests[0])
        if without if mutant is None else with_a_fault:
            time.sleep(60.0)
        return SURVIVES

    return run


@pytest.mark.parametrize(
    ("run", "outcome", "test"),
    [
        (fails_at("b"), Outcome.NOTICED, "b"),
        (fails_at("none of them"), Outcome.LIVES, ""),
        (fails_at("b", only_with_a_fault=False), Outcome.LIVES, ""),
        (sleeps(with_a_fault=True, without=False), Outcome.ENDLESS, "a"),
        (sleeps(with_a_fault=True, without=True), Outcome.UNDECIDED, ""),
    ],
    ids=["a test fails", "none fails", "it fails without the fault, too", "it waits", "the machine is busy"],
)
def test_a_fault_is_noticed_where_the_tests_succeed_without_it(run: Run, outcome: Outcome, test: str) -> None:
    verdict = Verdicts(run).of(Job(FAULT, ["a", "b", "c"], seconds=0.2))
    assert (verdict.outcome, verdict.test) == (outcome, test)


def test_what_is_loaded_is_tried_by_the_modules_own_tests_first() -> None:
    own = "tests/unit/ring/test_timing.py::test_a"
    recorded = Notes(dict.fromkeys([own, "tests/unit/ring/test_timing_of_others.py::test_b", "k"], 0.1))
    recorded.lines["ring/timing.py"] = {FAULT.line: {"k"}}
    assert choosing.tests_of(FAULT, recorded, 10.0, ["k"]) == ["k"]
    loaded_fault = timing_fault("MembershipTiming", "number", 2)
    assert choosing.tests_of(loaded_fault, recorded, 10.0, ["k"]) == [own, "k"]


@pytest.mark.parametrize(
    ("processor", "expected"),
    [
        (1.0, {"a": 0.75, "b": 0.25, "fails": float("inf")}),
        (9.0, {"a": 3.0, "b": 1.0, "fails": float("inf")}),  # Of several processors.
    ],
)
def test_what_else_a_processor_does_is_no_part_of_the_time_of_tests(
    processor: float, expected: dict[str, float]
) -> None:
    assert scaled({"a": 3.0, "b": 1.0, "fails": float("inf")}, processor) == expected


def test_a_fault_with_a_process_of_its_own_has_all_tests_that_need_no_server_and_time_to_load() -> None:
    names = [f"test_{number}" for number in range(100)]
    on_servers = ["test_0[postgresql]", "test_1[x-mariadb]"]
    recorded = Notes(seconds=dict.fromkeys([*names, on_servers[1]], 0.1))
    job = loaded(Job(FAULT, [*names, *on_servers], seconds=LEAST_TIME), recorded)
    assert (job.tests, job.seconds) == (names, pytest.approx(SLOWER * (LOADING_TIME + 10.0)))


def test_a_test_is_recorded_on_the_cheapest_of_its_databases() -> None:
    names = ["a[sqlite]", "a[postgresql]", "a[mariadb]", "b[x-postgresql]", "b[x-mariadb]", "c[mariadb]", "d"]
    on_each = [f"{ON_EACH[0]}::e[{name}]" for name in DATABASES]
    recorded = [name for name in (*names, *on_each) if not is_repeated(name, names + on_each)]
    assert recorded == ["a[sqlite]", "b[x-postgresql]", "c[mariadb]", "d", *on_each]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--again", "--table"], "--again forgets the results that --table reports"),
        (
            ["--tests", "tests/unit", "tests/unit/test_none.py"],
            "--tests tests/unit/test_none.py: there",
        ),
    ],
)
def test_arguments_that_would_lose_or_miss_results_are_refused(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        options_of(arguments)
    assert words in capsys.readouterr().err


def test_each_module_of_the_kernel_belongs_to_a_row() -> None:
    assert {kernel.row_of(path) for path in kernel.sources()} == set(kernel.KERNEL)


def test_each_known_survivor_is_a_fault_that_can_be_planted_and_has_its_reason() -> None:
    faults = {
        fault.key: fault
        for path in kernel.sources()
        for fault in mutants(path, (kernel.ROOT / path).read_text())
    }
    assert survivors.KNOWN.keys() - faults.keys() == set()
    for key, known in survivors.KNOWN.items():
        fault = faults[key]
        assert known.reason in survivors.REASONS
        assert known.fault == f"{fault.path} {fault.scope or 'module'}: {fault.before} -> {fault.after}"
