"""A conductor's side of a step whose services are all one scripted service."""

import typing
from collections.abc import Callable, Hashable

from harness.fake_context import FakeContext
from harness.scripted_service import ScriptedService
from keystoneauth1.adapter import Adapter
from stoker.conductor.steps.shared_reads import SharedReads
from stoker.resources.contract.views import ReplacementView

Json = typing.Any


class ScriptedContext(FakeContext):
    """A step's context with one service for all types, which shares nothing between steps."""

    def __init__(self, scripted: ScriptedService) -> None:
        super().__init__()
        self._scripted = scripted
        self.replaced_by: ReplacementView | None = None

    def adapter(self, service: str, version: str, microversion: str | None = None) -> Adapter:
        return self._scripted.adapter(service)

    def shared(
        self, key: Hashable, make: Callable[[], Json], max_age: float, *, checked_by_use: bool = False
    ) -> Json:
        return make()

    def replacement(self) -> ReplacementView | None:
        return self.replaced_by


class SharingContext(ScriptedContext):
    """A step's context that keeps what steps share."""

    def __init__(self, scripted: ScriptedService) -> None:
        super().__init__(scripted)
        self._reads = SharedReads(self.now)

    def shared(
        self, key: Hashable, make: Callable[[], Json], max_age: float, *, checked_by_use: bool = False
    ) -> Json:
        return self._reads.get(key, make, max_age)
