"""Helper processes: what is evaluated in them, what ends them, and that nothing is left of them."""

import contextlib
import os
import pathlib
import platform
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from harness.waiting import wait_for
from stoker.cli.programs.status import Checks, Code
from stoker.template.sandbox import evaluator, spawn, system_calls
from stoker.template.sandbox.errors import EvaluationError, HelperUnavailable, LimitReached, UnusableResult
from stoker.template.sandbox.evaluator import Account, charged_to
from stoker.template.sandbox.limits import MIB, HelperLimits
from stoker.template.sandbox.places import LONGEST_WAIT, Places
from stoker.template.sandbox.pool import HelperPool

QUICK = HelperLimits(seconds=0.5, processes=2)
PATIENT = HelperLimits(seconds=30)
ENDLESS = "regex('(a+)+$').matches($.data)"
POISON = "a" * 60 + "!"


@pytest.fixture(scope="module")
def pool():
    pool = HelperPool(QUICK)
    yield pool
    pool.close()


@pytest.fixture(scope="module")
def patient():
    """For expressions that end by themselves, on however slow a host."""
    pool = HelperPool(PATIENT)
    yield pool
    pool.close()


@contextlib.contextmanager
def own_pool(limits=QUICK):
    pool = HelperPool(limits)
    try:
        yield pool
    finally:
        pool.close()


def is_there(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "XZ"


def wait_until_gone(*pids):
    deadline = time.monotonic() + 60
    while any(map(is_there, pids)):
        assert time.monotonic() < deadline, [pid for pid in pids if is_there(pid)]
        time.sleep(0.02)


def children_of(pid):
    return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        (ENDLESS, "took more than 0.5 s"),
        ("'!' in $.data and regex('(a|a)*b').matches($.data)", "took more than 0.5 s"),
        ("$.data =~ '(a*)*$'", "took more than 0.5 s"),
        ("pow(9, pow(9, 9))", "took more than 0.5 s"),
        ("shiftBitsLeft(1, 10000000000)", "needs more than 64 MiB of memory"),
        ("[1] * 10000000000", "needs more than 64 MiB of memory"),
        ("let(a => range(1900).toList()) -> $a.select($a.select($a.sum()).sum()).sum()", "took more than"),
    ],
)
def test_what_holds_the_interpreter_ends_at_a_limit(pool, expression, words):
    with pytest.raises(LimitReached, match=words):
        pool.yaql(expression, POISON)
    assert pool.yaql("$.data + 1", 1) == 2


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("dict(pow(10, 5000) => 1)", "gives an integer with too many digits"),
        ("str(pow(10, 5000))", "gives an integer with too many digits"),
        ("1.assert(false)", "an assertion failed"),
        ("[1].select([].first())", "a sequence has no item where one is needed (StopIteration)"),
        ("[].first()", "a sequence has no item where one is needed (StopIteration)"),
        ("def(f, f()) -> f()", "is nested too deeply"),
        ("[" * 3000 + "]" * 3000, "is nested too deeply"),
        ("sequence()", "Collection length exceeds 2000 elements"),
        ("generate(1, true, $ + 1)", "Collection length exceeds 2000 elements"),
        ("'a' * 10000000000", "Expression consumed too much memory"),
        ("1 / 0", "division"),
        ("int('x')", "invalid literal"),
        ("regex('(')", "missing )"),
        ("str(let(a => 1))", "str() has no text for a Context"),
        ("[1, [let()]].join('')", "str() has no text for a tuple"),
        ("let(1).toString()", "for receiver Context"),
        ("$.(", "Parse error"),
        ("", "Parse error"),
    ],
)
def test_an_expression_that_fails_has_words_for_it(patient, expression, words):
    with pytest.raises(EvaluationError) as caught:
        patient.yaql(expression, None)
    assert words in str(caught.value)
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("pow(10, 5000)", "gives a whole number of more than 1024 bits"),
        ("[1 - pow(2, 1025)]", "gives a whole number of more than 1024 bits"),
        ("float(nan)", "gives nan, which JSON cannot represent"),
        ("[float(inf)]", "gives inf, which JSON cannot represent"),
        ("now()", "gives a datetime, which JSON cannot represent"),
        ("now() - now()", "gives a timedelta, which JSON cannot represent"),
        ("regex(a)", "gives a Pattern, which JSON cannot represent"),
        ("dict(now() => 1)", "gives a map with a datetime as a key"),
    ],
)
def test_a_value_that_json_cannot_hold_is_refused(patient, expression, words):
    with pytest.raises(UnusableResult, match=words):
        patient.yaql(expression, None)


@pytest.mark.parametrize(
    ("expression", "data", "value"),
    [
        ("$.data", {"a": [1, 2.5, None, True, "ä\ud800"]}, {"a": [1, 2.5, None, True, "ä\ud800"]}),
        ("$.data.select($ * 2)", [1, 2], [2, 4]),
        ("set(c, a, b).orderBy($)", None, ["a", "b", "c"]),
        ("dict(1 => 2, null => 3, true => 4)", None, {"1": 4, "None": 3}),
        ("pow(10, 4000) > 0", None, True),
        ("str($.data.select($ + 1))", [1], "(2,)"),
        ("[null, true, 1.5, a].join(' ')", None, "null true 1.5 a"),
        ("pow(2, 1024) - 1", None, 2**1024 - 1),
    ],
)
def test_a_value_is_what_it_was(patient, expression, data, value):
    assert patient.yaql(expression, data) == value


def test_a_set_has_the_same_order_in_each_process():
    expression = "$.data.toSet()"
    data = [f"item {number}" for number in range(50)]
    with own_pool(PATIENT) as first, own_pool(PATIENT) as second:
        assert first.yaql(expression, data) == second.yaql(expression, data)


def test_the_limits_of_yaql_are_those_that_are_set():
    with own_pool(HelperLimits(seconds=30, limit_iterators=5, memory_quota=2000)) as pool:
        assert pool.yaql("range(5).sum()", None) == 10
        with pytest.raises(EvaluationError, match="exceeds 5 elements"):
            pool.yaql("range(6).sum()", None)
        with pytest.raises(EvaluationError, match="too much memory"):
            pool.yaql("'a' * 3000", None)


def test_data_and_results_have_a_limit_in_bytes():
    with own_pool(HelperLimits(message=10_000)) as pool:
        with pytest.raises(LimitReached, match="it has 20... bytes as JSON; the limit is 10000"):
            pool.yaql("1", "a" * 20_000)
        with pytest.raises(LimitReached, match="gives 300.. bytes as JSON; the limit is 10000"):
            pool.yaql("[$.data, $.data, $.data, $.data, $.data]", "a" * 6_000)
        assert pool.yaql("$.data", [1]) == [1]


def test_data_that_are_no_json_are_refused(pool):
    for data in (object(), 10**5000):
        with pytest.raises(EvaluationError, match="its data are not JSON"):
            pool.yaql("1", data)


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("[a-z]+", "abc", True),
        ("[a-z]+", "abc1", False),
        ("a|ab", "ab", True),
        (r"(?=.*[A-Z])(?=.*\d).{8,}", "Password1", True),
        (r"(?=.*[A-Z])(?=.*\d).{8,}", "password1", False),
        (r"(.)\1", "aa", True),
        (r"\w+", "straße", True),
    ],
)
def test_patterns_are_those_of_python(pool, pattern, text, matches):
    assert pool.match(pattern, text) is matches


def test_names_are_found_by_their_beginning(pool):
    assert pool.filter_by_start("OS::(Nova|Heat)", ["OS::Nova::Server", "AOS::Heat", "OS::Heat::None"]) == [
        "OS::Nova::Server",
        "OS::Heat::None",
    ]
    with pytest.raises(LimitReached, match="took more than"):
        pool.filter_by_start("(a+)+$", [POISON])


def test_a_pattern_is_refused_or_ends_at_a_limit(pool):
    with pytest.raises(EvaluationError, match="unterminated character set"):
        pool.match("[a-z", None)
    with pytest.raises(LimitReached, match=r"took more than 0\.5 s"):
        pool.match("(a+)+", POISON)
    assert pool.match("(a+)+", None) is False


def test_a_helper_that_is_killed_from_outside_is_replaced():
    with own_pool() as pool:
        assert pool.yaql("1 + 1", None) == 2
        fork_server, helper = pool.pids()
        os.kill(helper, signal.SIGKILL)
        wait_until_gone(helper)
        assert pool.yaql("1 + 1", None) == 2
        assert pool.pids()[0] == fork_server
        assert pool.pids()[1] != helper


def test_a_fork_server_that_is_killed_is_replaced():
    with own_pool() as pool:
        assert pool.yaql("1 + 1", None) == 2
        old = pool.pids()
        os.kill(old[0], signal.SIGKILL)
        deadline = time.monotonic() + 60
        while is_there(old[0]):  # It is a zombie until the pool waits for it.
            assert time.monotonic() < deadline
            time.sleep(0.02)
        with pytest.raises(LimitReached):
            pool.yaql(
                ENDLESS, POISON
            )  # Takes the helper that is idle still, and needs the fork server to end it.
        assert pool.yaql("1 + 1", None) == 2
        assert set(pool.pids()).isdisjoint(old)
    wait_until_gone(*old)


def test_nobody_is_left_after_limits_and_close():
    with own_pool() as pool:
        for _ in range(3):
            with pytest.raises(LimitReached):
                pool.yaql(ENDLESS, POISON)
        assert pool.yaql("1", None) == 1
        fork_server, helper = pool.pids()
        assert children_of(fork_server) == [helper], "ended helpers are zombies"
    wait_until_gone(fork_server, helper)
    assert pool.pids() == []
    assert fork_server not in children_of(os.getpid())


def test_the_processes_end_with_the_one_that_started_them():
    script = (
        "import sys\nfrom stoker.template.sandbox.pool import install\n"
        "pool = install()\npool.yaql('1', None)\n"
        "print(*pool.pids(), flush=True)\nsys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        pids = [int(word) for word in process.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_there, pids))
        process.kill()
    wait_until_gone(*pids)


def test_a_helper_knows_nothing_of_its_parent(monkeypatch):
    monkeypatch.setenv("OS_PASSWORD", "secret")
    with own_pool() as pool:
        assert pool.yaql("$.data", "hidden value") == "hidden value"
        for pid in pool.pids():
            root = pathlib.Path(f"/proc/{pid}")
            assert b"secret" not in (root / "environ").read_bytes()
            assert b"hidden" not in (root / "cmdline").read_bytes()
        helper = pool.pids()[1]
        handles = {int(path.name): os.readlink(path) for path in pathlib.Path(f"/proc/{helper}/fd").iterdir()}
        assert {handles[number] for number in range(3)} == {"/dev/null"}
        assert set(handles) == {0, 1, 2, 3, 4}
        assert handles[4].endswith("/statm"), "its own size, opened before the filter"
        if system_calls.program(platform.machine()) is not None:
            assert "Seccomp:\t2\n" in pathlib.Path(f"/proc/{helper}/status").read_text()
        limits = pathlib.Path(f"/proc/{helper}/limits").read_text()
        assert "Max core file size        0 " in limits
        assert "Max file size             0 " in limits
        assert "Max processes             0 " in limits
        assert "Max open files            8 " in limits
        assert "NoNewPrivs:\t1\n" in pathlib.Path(f"/proc/{helper}/status").read_text()
        space = int(limits.split("Max address space")[1].split()[0])
        assert space < QUICK.memory + 100 * MIB


FORBIDDEN = """
import ctypes, mmap, os, signal, socket, subprocess, sys
from stoker.template.sandbox import system_calls

libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)
parent = os.getppid()
files = os.open("/", os.O_RDONLY)
attempts = {
    "a socket": lambda: socket.socket(),
    "a pair of sockets": lambda: socket.socketpair(),
    "a program": lambda: os.execv("/bin/true", ["true"]),
    "a process": lambda: os.fork(),
    "a file": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "a new file": lambda: os.open("/tmp/stoker-x", os.O_CREAT | os.O_WRONLY),
    "a list of files": lambda: os.listdir(files),
    "a removal": lambda: os.unlink("/tmp/stoker-x"),
    "a signal": lambda: os.kill(parent, 0),
    "a pipe": lambda: os.pipe(),
    "a limit": lambda: __import__("resource").setrlimit(1, (9, 9)),
    "an ioctl": lambda: __import__("fcntl").ioctl(1, 0x5413, b"x" * 8),
    "a trace": lambda: _checked(libc.ptrace(0, 0, 0, 0)),
    "memory of another process": lambda: _checked(libc.process_vm_readv(parent, None, 0, None, 0, 0)),
}

def _checked(result):
    if result == -1:
        raise OSError(ctypes.get_errno(), "")

__import__("resource"), __import__("fcntl")
problem = system_calls.restrict()
assert problem is None, problem
for name, attempt in attempts.items():
    try:
        attempt()
        print("allowed:", name)
    except OSError as error:
        if error.errno != 1:
            print(name, error)
    except ValueError as error:  # Python's error for a limit that the system refuses.
        if "not allowed" not in str(error):
            print(name, error)
print("ended", sum(range(10**6)), len(bytearray(10**7)))
"""


@pytest.mark.skipif(system_calls.program(platform.machine()) is None, reason="the system has no filter")
def test_a_helper_opens_nothing_and_starts_nothing():
    done = subprocess.run([sys.executable, "-c", FORBIDDEN], capture_output=True, text=True, check=False)
    assert done.stdout == "ended 499999500000 10000000\n", done.stderr


@pytest.mark.skipif(system_calls.program(platform.machine()) is None, reason="the system has no filter")
@pytest.mark.parametrize(
    "expression",
    [
        "str(datetime('2026-11-27T10:00:00Z') > datetime(2020, 1, 1))",
        "str(now().year > 2020)",
        "datetime(2026, 11, 27).format('%Y %B') = '2026 November'",
        "str(datetime('27 Nov 2026', '%d %b %Y').month)",
        "str(localtz())",
        "str(random() < 1)",
        "str(regex('[äö]+').matches('ä'))",
        "'ß'.toUpper()",
        "str(timespan(days => 1).hours)",
    ],
)
def test_the_functions_of_yaql_need_nothing_that_the_filter_refuses(expression):
    with own_pool() as pool:
        assert pool.yaql(expression, None)


def test_a_machine_without_a_filter_is_named(monkeypatch):
    monkeypatch.setattr(platform, "machine", lambda: "vax")
    problem = system_calls.restrict()
    assert problem.startswith("there is no filter for ")
    assert problem.endswith(" on vax")


def test_a_filter_allows_what_is_listed_and_no_other_machine():
    code = system_calls.program("x86_64")
    assert len(code) % 8 == 0
    assert system_calls.program("aarch64") != code
    assert system_calls.program("i686") is None


def test_a_forked_process_has_helpers_of_its_own():
    with own_pool() as pool:
        assert pool.yaql("1", None) == 1
        parent_pids = pool.pids()
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with contextlib.suppress(BaseException):
                answer = pool.yaql("$.data", 42)
                os.write(writer, f"{answer} {set(parent_pids).isdisjoint(pool.pids())}".encode())
                pool.close()
            os._exit(0)
        os.close(writer)
        assert os.read(reader, 100) == b"42 True"
        os.close(reader)
        os.waitpid(child, 0)
        assert pool.yaql("$.data", 1) == 1
        assert pool.pids() == parent_pids


def test_an_account_is_charged_for_all_its_expressions():
    with own_pool(HelperLimits(seconds=0.5)) as pool:
        account = Account("p", 0.8)
        assert pool.yaql("1", None, budget=account) == 1
        assert 0.5 < account.seconds_left() <= 0.8
        with pytest.raises(LimitReached, match=r"took more than 0\.5 s"):
            pool.yaql(ENDLESS, POISON, budget=account)
        with pytest.raises(LimitReached, match="took more than 0"):
            pool.yaql(ENDLESS, POISON, budget=account)
        with pytest.raises(LimitReached, match="is used up"):
            pool.yaql("1", None, budget=account)
        assert pool.yaql("1", None) == 1


def test_the_process_pool_charges_the_account_of_the_thread():
    pool = evaluator.current()
    with charged_to("p", 0.0), pytest.raises(LimitReached, match="is used up"):
        pool.yaql("1", None)
    assert pool.yaql("1", None) == 1
    assert pool.match("a", "a") is True


def test_one_project_takes_half_of_the_helpers():
    places = Places(4)
    with places.occupied("a", 0), places.occupied("a", 0):
        with pytest.raises(HelperUnavailable, match="no helper process was free"), places.occupied("a", 0):
            pass
        with places.occupied("b", 0), places.occupied("c", 0), pytest.raises(HelperUnavailable):
            places.occupied("d", 0.01).__enter__()
        with places.occupied("d", 0), places.occupied("d", 0):
            pass
    with places.occupied("a", 0):
        pass


def test_a_project_that_computes_much_holds_few_threads_of_others():
    clock = [0.0]
    places = Places(4, monotonic=lambda: clock[0])
    with contextlib.ExitStack() as held:
        for _ in range(2):
            held.enter_context(places.occupied("a", 0))
        clock[0] = 0.9
        waiting = [threading.Thread(target=lambda: places.occupied("a", 60).__enter__()) for _ in range(2)]
        for thread in waiting:
            thread.start()
        wait_for(lambda: places._waiting["a"] == 2)  # noqa: SLF001
        with pytest.raises(HelperUnavailable, match="all the time that is its share"):
            places.occupied("a", 60).__enter__()
        with places.occupied("b", 0):
            pass
    for thread in waiting:
        thread.join()


def test_a_call_waits_for_a_helper_that_is_busy():
    places = Places(1)
    occupied = threading.Event()
    free = threading.Event()

    def hold():
        with places.occupied("a", 0):
            occupied.set()
            free.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    occupied.wait(60)
    threading.Timer(0.1, free.set).start()
    with places.occupied("a", 60):
        assert free.is_set()
    thread.join()


def test_the_host_that_cannot_start_a_process_is_not_the_users_error(monkeypatch):
    def refuse(*args, **options):
        raise OSError(11, "Resource temporarily unavailable")

    with own_pool() as pool:
        monkeypatch.setattr(subprocess, "Popen", refuse)
        with pytest.raises(HelperUnavailable, match="Resource temporarily unavailable"):
            pool.yaql("1", None)
        monkeypatch.undo()
        assert pool.yaql("1", None) == 1


def test_a_pool_has_no_process_before_its_first_expression_and_then_says_whether_calls_are_filtered():
    with own_pool() as pool:
        assert (pool.pids(), pool.unfiltered()) == ([], None)
        assert pool.yaql("1", None) == 1
        assert pool.unfiltered() == system_calls.why_unfiltered()


@pytest.mark.parametrize(("machine", "words"), [("i686", "not filtered: "), (None, "filt")])
def test_the_check_of_upgrades_says_whether_calls_are_filtered(
    monkeypatch: pytest.MonkeyPatch, machine: str | None, words: str
) -> None:
    if machine is not None:
        monkeypatch.setattr(platform, "machine", lambda: machine)
    elif system_calls.why_unfiltered():
        pytest.skip("the system has no filter")
    result = Checks(None).system_calls()
    assert (result.code, result.details.startswith(words)) == (Code.SUCCESS, True), result.details


def test_the_start_of_the_process_is_no_use_of_a_projects_share(monkeypatch):
    spawn_process = spawn._spawn

    def slow(end):
        time.sleep(LONGEST_WAIT + 0.2)
        return spawn_process(end)

    monkeypatch.setattr(spawn, "_spawn", slow)

    def evaluate(pool):
        with charged_to("shop", 30.0):
            return pool.match("a", "a")

    with own_pool(HelperLimits(seconds=30, processes=2)) as pool, ThreadPoolExecutor(8) as threads:
        first = threads.submit(evaluate, pool)
        time.sleep(0.9)  # By now each turn of the project would seem to take so long.
        others = [threads.submit(evaluate, pool) for _ in range(7)]
        assert [future.result() for future in (first, *others)] == [True] * 8
