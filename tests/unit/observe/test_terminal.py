"""The one door to the terminals of people: no text that passes it is obeyed."""

import argparse
import io
import json
import typing

import pytest
from cliff.lister import Lister
from rich.table import Table
from rich.text import Text
from stoker.observe.screen import make_console
from stoker.observe.terminal import (
    CLEAR,
    HarmlessTable,
    harmless,
    write_document,
    write_in_place,
    write_json,
    write_lines,
    write_question,
    write_wrapped,
)

HOSTILE = "a\x1b[2J\u202e\x9b5m\r\nb"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("write", [write_lines, write_question, write_document, write_in_place, write_json])
def test_no_writer_lets_a_terminals_orders_through(write: typing.Any) -> None:
    stream = Terminal()
    write(stream, HOSTILE)
    text = stream.getvalue().removeprefix(CLEAR)
    assert all(harmless(line) == line for line in text.split("\n"))


def test_a_name_does_not_begin_a_line_of_its_own() -> None:
    stream = io.StringIO()
    write_lines(stream, "one\nstack two is complete", 3)
    assert stream.getvalue() == "one\\x0astack two is complete\n3\n"


def test_json_keeps_the_value() -> None:
    stream = io.StringIO()
    write_json(stream, [HOSTILE])
    assert json.loads(stream.getvalue()) == [HOSTILE]


def test_a_document_is_exact_in_a_file() -> None:
    stream = io.StringIO()
    write_document(stream, HOSTILE)
    assert stream.getvalue() == HOSTILE


@pytest.mark.parametrize("wrapped", [str, Text, lambda text: Table(text)])
def test_a_console_obeys_nobody_but_its_program(wrapped: typing.Any) -> None:
    stream = io.StringIO()
    make_console(stream, width=80).print(wrapped(HOSTILE))
    assert all(harmless(line) == line for line in stream.getvalue().split("\n"))
    assert "\\x1b" in stream.getvalue()


def test_colours_pass() -> None:
    stream = Terminal()
    console = make_console(stream, width=80)
    console._color_system = None
    console.print(Text("done\nwell", "bold"))
    assert stream.getvalue().splitlines() == ["done", "well"]


class _Names(HarmlessTable, Lister):
    """A list of one name."""

    def take_action(self, parsed_args: typing.Any) -> typing.Any:
        return ("Name", "Count"), [(HOSTILE, 1)]


@pytest.mark.parametrize("form", ["table", "value", "csv", "json"])
def test_the_cells_of_a_list_are_harmless(form: str) -> None:
    stream = io.StringIO()
    command = _Names(argparse.Namespace(stdout=stream), None)  # type: ignore[arg-type]
    command.run(command.get_parser("names").parse_args(["-f", form]))
    text = stream.getvalue()
    assert all(harmless(line.rstrip("\r")) == line.rstrip("\r") for line in text.split("\n"))
    if form == "json":
        assert json.loads(text) == [{"Name": HOSTILE, "Count": 1}]


def test_a_long_line_has_more_rows_on_a_terminal_and_none_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    why = f"  why: its step has not returned from its first call {HOSTILE} the call is slow, or hangs"
    command = f"  sooner: stoker-manage stack retry {'a' * 36} --resource disk"
    long = f"{'x' * 70} y"
    terminal, script = Terminal(), io.StringIO()
    for stream in (terminal, script):
        write_wrapped(stream, "short", why, command, long)
    assert script.getvalue().splitlines() == ["short", harmless(why), command, long]
    rows = terminal.getvalue().splitlines()
    assert rows[0] == "short"
    assert [row for row in rows[1:3] if len(row) > 60] == []
    assert [len(row) - len(row.lstrip()) for row in rows[1:4]] == [2, 6, 6]
    assert " ".join(row.strip() for row in rows[1:-3]) == harmless(why).strip()
    assert rows[-3:] == [command, "x" * 70, "    y"]
