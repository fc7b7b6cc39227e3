"""The page on Horizon: its settings are those with which the tests run it."""

import pathlib
import re
import textwrap

ROOT = pathlib.Path(__file__).parents[2]
PAGE = (ROOT / "doc" / "horizon.md").read_text()


def test_the_settings_are_those_of_the_tests() -> None:
    installed = ROOT / "tests" / "harness" / "horizon" / "installed" / "_1700_stoker.py"
    assert textwrap.indent(installed.read_text(), " " * 7) in PAGE


def test_the_files_of_the_dashboard_are_installed_where_the_tests_copy_them() -> None:
    script = (ROOT / "tools" / "install-horizon").read_text()
    copied = re.findall(r"heat_dashboard/(\S+) SITE/openstack_dashboard/(\S+)", PAGE)
    assert len(copied) == 3
    for source, target in copied:
        assert re.search(
            rf"^cp .*heat_dashboard/{re.escape(source)} .*\$dashboard/{target}", script, re.MULTILINE
        )
