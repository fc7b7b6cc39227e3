"""The commands of the pages for operators do what the pages show."""

import os
import pathlib
import re
from collections.abc import Iterator

import pytest
from client.serving import Service
from doc.shown import run, steps
from harness.programs import BIN


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    started = Service(tmp_path_factory.mktemp("pages"), conductors=3)
    yield started
    started.stop()


@pytest.mark.full
@pytest.mark.parametrize("page", ["day1.md", "day2.md"])
def test_the_commands_print_what_the_page_says(running: Service, page: str) -> None:
    pairs = steps(page)
    assert len(pairs) >= 4
    env = {
        **os.environ,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "OS_AUTH_TYPE": "none",
        "OS_ENDPOINT": f"{running.url}/v1/{pathlib.Path(page).stem}",
        "STOKER_CONFIG_FILE": str(running.data / "stoker.conf"),
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }
    for command, expected in pairs:
        # The limit of the command's own is for operators, whose hosts are not that slow.
        run(re.sub(r"^(stoker-manage ring .*--wait)$", r"\1 --timeout 200", command), expected, env)
