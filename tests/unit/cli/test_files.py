"""The list of installed files; tests/unit/test_wheel.py has all that are in a wheel."""

import pathlib

import pytest
from stoker.cli.commands.base import AdminError
from stoker.cli.commands.files import files_of, with_part

PATHS = [
    pathlib.PurePath("/opt/stoker", name)
    for name in (
        "share/stoker/systemd/stoker-api.service",
        "lib/stoker/api/app.py",
        "share/man/man1/stoker.1",
    )
]


def test_parts_of_the_program_are_not_listed() -> None:
    assert with_part(files_of(PATHS), "") == [
        ("man page", "/opt/stoker/share/man/man1/stoker.1"),
        ("unit of systemd", "/opt/stoker/share/stoker/systemd/stoker-api.service"),
    ]


def test_a_part_of_a_path_chooses() -> None:
    assert [purpose for purpose, _ in with_part(files_of(PATHS), "systemd")] == ["unit of systemd"]


@pytest.mark.parametrize(
    ("paths", "reason"),
    [(PATHS, "no installed file has 'grafna' in its path"), (PATHS[1:2], "only the programs were installed")],
)
def test_a_list_without_files_is_an_error_that_says_why(paths: list[pathlib.PurePath], reason: str) -> None:
    with pytest.raises(AdminError, match=reason):
        with_part(files_of(paths), "grafna")
