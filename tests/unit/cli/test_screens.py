"""Screens of the operators' commands, and the help texts."""

import io

import pytest
from stoker.cli.commands.progress import ProgressLine, progress_text
from stoker.cli.commands.ring_screen import ring_screen
from stoker.cli.config import about
from stoker.cli.programs.manage import COMMANDS, ManageApp
from stoker.db.conductors import ConductorRecord
from stoker.features.diagnosis.operator_views import ring
from stoker.features.diagnosis.presence import Presence
from stoker.features.diagnosis.ring import ring_plan
from stoker.observe.screen import make_console
from stoker.observe.terminal import CLEAR
from stoker.ring.changes import changed_view
from stoker.ring.hashring import Member, View, assign
from stoker.ring.observer import GroupStatus

NOW = 1_800_000_000.0
COUNT = 64
HOSTILE = "c\x1b[2J"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def presence(*hosts: str, silent: str | None = None) -> Presence:
    """Conductors that are alive, but for one."""
    members = [Member(host, "i", started_at=1.0) for host in hosts]
    view = View.of(members, COUNT)
    rows = {
        host: ConductorRecord(
            host,
            f"{host}/i",
            "active",
            1.0,
            NOW - 1,
            shards_owned=len(assign(view).shards_of(host)),
            ring_version=view.version,
            threads=32,
            threads_busy=7,
        )
        for host in hosts
    }
    alive = frozenset(member for member in members if member.host != silent)
    return Presence(NOW, rows, GroupStatus(alive, frozenset(members) - alive), None, COUNT)


def drawn(presence: Presence, stream: io.StringIO, width: int = 140) -> str:
    make_console(stream, width=width).print(ring_screen(ring(presence, {1: 5}, {}, shards=False)))
    return stream.getvalue()


def test_the_screen_of_a_ring_has_a_bar_for_each_share_and_the_sums() -> None:
    screen = drawn(presence("one", "two"), io.StringIO())
    rows = [line for line in screen.splitlines() if "●" in line]
    assert [line.split()[:3] for line in rows] == [["●", "one", "active"], ["●", "two", "active"]]
    for line, share in zip(
        rows, (len(assign(presence("one", "two").ring).shards_of("one")) / COUNT,), strict=False
    ):
        assert line.count("█") == round(20 * share)
        assert f"{share:.1%}" in line
        assert "7/32" in line
    assert "stacks in progress: 5; threads busy: 14 of 64" in screen
    assert f"healthy: every one of {COUNT} shards has one owner" in screen


def test_a_narrow_terminal_has_fewer_columns_of_a_ring_and_whole_words() -> None:
    hosts = ("conductor-1", "conductor-2")
    lines = drawn(presence(*hosts), io.StringIO(), width=80).splitlines()
    rows = [line for line in lines if "●" in line]
    assert [line.split()[1:3] for line in rows] == [[host, "active"] for host in hosts]
    assert all(line.count("%") == 1 and "…" not in line and "█" not in line for line in rows)
    assert max(len(line) for line in lines if "threads busy" not in line) <= 80


def test_a_silent_conductor_is_marked_by_colour_and_by_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    screen = drawn(presence("one", "two", silent="two"), stream)
    assert "silent" in screen
    assert "not settled: two is silent" in screen
    assert "\x1b[1;31m●" in screen, "bold red"


def test_a_hostile_hosts_name_is_harmless() -> None:
    screen = drawn(presence("one", HOSTILE), io.StringIO())
    assert "\x1b" not in screen
    assert "c\\x1b[2J" in screen


def test_a_plan_in_words() -> None:
    old = presence("one", "two").ring
    by_shard = dict.fromkeys(range(COUNT), 1)
    alone = ring_plan(old, changed_view(old, ["one"], {}, {}), by_shard)
    moved = len(assign(old).shards_of("one"))
    moves = f"{moved / COUNT:.0%} of the ring moves, with {moved} stacks in progress"
    assert alone.summary() == f"{moves}; then the shares are two 100%"
    assert alone.warnings() == ["only two would be left: no conductor takes over its work if it fails"]
    more = ring_plan(old, changed_view(old, [], {f"h{n}": 1.0 for n in range(6)}, {}), {})
    assert more.warnings() == []
    assert more.summary().endswith(", and 3 others less")
    same = ring_plan(old, changed_view(old, [], {}, {"one": 1.0}), by_shard)
    assert same.summary() == "nothing moves"


def test_a_line_of_progress_is_for_terminals_and_not_written_too_often() -> None:
    now = [0.0]
    stream = Terminal()
    script = io.StringIO()
    line = ProgressLine(stream, lambda: now[0])
    for text in ("1 of 3", "2 of 3"):
        line.show(text)
    now[0] = 1.0
    line.show(f"3 of 3 {HOSTILE}")
    line.clear()
    line.clear()
    assert stream.getvalue() == f"{CLEAR}1 of 3{CLEAR}3 of 3 c\\x1b[2J{CLEAR}"
    logged = ProgressLine(script, lambda: now[0])
    for text, seconds in (
        ("1 of 9", 0.0),
        ("2 of 9", 9.0),
        ("3 of 9", 11.0),
        ("4 of 9", 12.0),
        ("5 of 9", 22.0),
    ):
        now[0] = 1.0 + seconds
        logged.show(text)
    logged.clear()
    assert script.getvalue() == "3 of 9\n5 of 9\n"


def test_progress_has_a_bar_a_rate_and_an_end_within_the_width_of_the_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    now = [0.0]
    stream = Terminal()
    script = io.StringIO()
    lines = [ProgressLine(stream, lambda: now[0]), ProgressLine(script, lambda: now[0])]
    for now[0], done in ((0.0, 2000), (100.0, 4000)):
        for line in lines:
            line.count("import", done, "root stacks", 10_000)
    first, second = stream.getvalue().split(CLEAR)[1:]
    assert first == "import: [###-------------] 20 %, 2,000 of 10,000 root stacks"
    assert second == "import: [######----------] 40 %, 4,000 of 10,000 root stacks, 20/s, 5 min left"
    assert max(len(first), len(second)) < 80
    assert script.getvalue() == "import: 40 %, 4,000 of 10,000 root stacks, 20/s, 5 min left\n"


@pytest.mark.parametrize(
    ("total", "rate", "text"),
    [
        (None, 0.0, "purge: 60 rows"),
        (None, 2.5, "purge: 60 rows, 2.5/s"),
        (0, 2.5, "purge: 60 rows, 2.5/s"),
        (90, 20.0, "purge: 66 %, 60 of 90 rows, 20/s, 2 s left"),
        (50, 1.0, "purge: 100 %, 60 of 50 rows, 1.0/s, 0 s left"),
        (100_060, 1.0, "purge: 0 %, 60 of 100,060 rows, 1.0/s, 27.8 h left"),
    ],
)
def test_a_line_of_progress_says_what_is_known(total: int | None, rate: float, text: str) -> None:
    assert progress_text("purge", 60, "rows", total, rate) == text


@pytest.mark.parametrize("program", about.PROGRAMS)
def test_a_programs_help_names_the_others_and_documents_that_exist(program: str) -> None:
    text = about.epilog(program)
    assert [name for name in about.PROGRAMS if f"{name} {about.PROGRAMS[name]}" in text] == [
        name for name in about.PROGRAMS if name != program
    ]
    assert about.description(program).startswith(f"{program} {about.PROGRAMS[program]}. ")


@pytest.mark.parametrize(
    ("arguments", "code"), [(["ring", "--help"], 0), (["help", "ring"], 0), (["ring"], 2)]
)
def test_a_group_of_commands_lists_each_with_its_line(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = io.StringIO()
    app = ManageApp()
    monkeypatch.setattr(app, "stdout", out)
    monkeypatch.setattr(app, "initialize_app", lambda argv: None)
    assert app.run(arguments) == code
    lines = out.getvalue().splitlines()
    assert [" ".join(line.split()[:2]) for line in lines] == sorted(
        n for n in COMMANDS if n.startswith("ring ")
    )
    assert all(len(line.split()) > 4 for line in lines)
