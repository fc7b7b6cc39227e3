"""The demonstration on a cloud says what has failed, and where the log is, without a traceback."""

import importlib.util
import pathlib
import subprocess
import types
import typing

import pytest
from harness.processes import ProcessEnded

DEMO = pathlib.Path(__file__).parents[2] / "examples" / "demo_cloud.py"


@pytest.fixture
def demo(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location("demo_cloud", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LOG", tmp_path / "var" / "demo.log")
    return module


def test_a_cloud_that_does_not_start_is_named_with_its_reason(
    demo: types.ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Broken:
        def __enter__(self) -> typing.NoReturn:
            raise ProcessEnded("Cloud ended with 1:\nmariadbd is not installed")

        def __exit__(self, *error: object) -> None:
            pass

    monkeypatch.setattr(demo, "CloudServer", Broken)
    assert demo.main() == 1
    assert "cannot start: Cloud ended with 1:\nmariadbd is not installed" in capsys.readouterr().out


def test_a_command_that_fails_is_named_with_the_log(
    demo: types.ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands: list[tuple[str, ...]] = []
    monkeypatch.setattr(demo, "openstack", lambda cloud, *words, check=True: commands.append(words))
    demo.explain(None, subprocess.CalledProcessError(1, ["bin/openstack", "stack", "create", "app"]))
    printed = capsys.readouterr().out
    assert "This command failed: openstack stack create app" in printed
    assert str(demo.LOG) in printed
    assert commands == [("stack", "failures", "list", "--long", "app")]
