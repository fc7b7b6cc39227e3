"""A scripted service of a cloud for each test that asks for one."""

from collections.abc import Iterator

import pytest
from harness.scripted_service import ScriptedService, serving
from harness.scripted_work import ScriptedWork


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        yield service


@pytest.fixture
def context(scripted: ScriptedService) -> ScriptedWork:
    """The context of steps that call the scripted service."""
    return ScriptedWork(scripted)
