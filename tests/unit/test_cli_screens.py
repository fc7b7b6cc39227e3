"""Screens of the operators' commands, and the help texts."""

import io

import pytest
from stoker.cli.commands.progress import ProgressLine
from stoker.cli.commands.ring_screen import ring_screen
from stoker.cli.config import about
from stoker.cli.programs.manage import COMMANDS, ManageApp
from stoker.db.conductors import ConductorRecord
from stoker.features.diagnosis.operator_views import ring
from stoker.features.diagnosis.presence import Presence
from stoker.features.diagnosis.ring import ring_plan
from stoker.observe.terminal import CLEAR, make_console
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


def drawn(presence: Presence, stream: io.StringIO) -> str:
    make_console(stream, width=140).print(ring_screen(ring(presence, {1: 5}, {}, shards=False)))
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
    silent = ProgressLine(script)
    silent.show("1 of 3")
    silent.clear()
    assert script.getvalue() == ""


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
