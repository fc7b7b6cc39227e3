"""A scripted service of a cloud for each test that asks for one."""

from collections.abc import Iterator

import pytest
from harness.scripted_context import ScriptedContext
from harness.scripted_service import ScriptedService, serving


@pytest.fixture
def scripted() -> Iterator[ScriptedService]:
    with serving() as service:
        yield service


@pytest.fixture
def context(scripted: ScriptedService) -> ScriptedContext:
    """The context of steps that call the scripted service."""
    return ScriptedContext(scripted)
