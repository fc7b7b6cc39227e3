"""The tutorial's commands do what it shows."""

import contextlib
import math
import os
import pathlib
import re
from collections.abc import Mapping, Sequence

import pytest
from client.serving import Service
from doc.shown import prints, run, steps
from harness.pace import measure
from harness.processes import Process
from harness.programs import BIN

Step = tuple[str, Sequence[str]]
EXPORT = re.compile(r"export .*OS_ENDPOINT=\S+:8004(\S+)")


def test_the_comparison_finds_differences() -> None:
    assert prints(["a … c", "…", "d"], "a b c\nx\ny\nd\n")
    assert not prints(["a … c", "d"], "a b c\nx\nd\n")
    assert not prints([], "a\n")


def catch(create: Step, show: Step, env: Mapping[str, str]) -> None:
    """Create a stack, and see it in progress; where that ended before it was seen, all of it lasts longer."""
    lasts = math.ceil(8 * min(measure().wall for _ in range(5)))
    for seconds in (lasts, 5 * lasts):
        run(create[0].replace("seconds=8", f"seconds={seconds}"), create[1], env)
        with contextlib.suppress(TimeoutError):
            return run(*show, env, within=2 * seconds + 20)
        run("openstack stack delete --yes --wait second", ["…"], env)
    raise AssertionError(f"not in progress when it was seen: {show}")


@pytest.mark.full
def test_the_steps_show_what_the_page_says(tmp_path: pathlib.Path) -> None:
    env = {**os.environ, "OS_AUTH_TYPE": "none", "COLUMNS": "200", "NO_COLOR": "1"}
    env["PATH"] = f"{BIN}:{env['PATH']}"
    running: Service | None = None
    pairs = iter(steps("tutorial.md"))
    try:
        for command, expected in pairs:
            if command == "make serve":
                if running is not None:
                    running.process.kill()
                    (tmp_path / "stoker.log").rename(tmp_path / "killed.log")
                running = Service(tmp_path, conductors=3, kind=Process)
            elif (endpoint := EXPORT.match(command)) is not None:
                assert running is not None
                tenant = endpoint[1]
            else:
                assert running is not None
                env["OS_ENDPOINT"] = running.url + tenant
                if "seconds=8" in command:
                    catch((command, expected), next(pairs), env)
                else:
                    run(command, expected, env)
    finally:
        if running is not None:
            running.stop()
