"""The table of the classes of steps: one for each kind of task that is claimed."""

from collections.abc import Mapping

from ....db.states import TaskKind
from .actions import CheckStep, ObserveStep, RefreshStep, ResumeStep, ScaleStep, SignalStep, SuspendStep
from .base import AdoptStep, CreateStep, TaskStep
from .delete import CleanupStep, DeleteSnapshotStep, DeleteStep
from .snapshot import SnapshotStep
from .update import UpdateStep

KINDS: Mapping[TaskKind, type[TaskStep]] = {
    TaskKind.CREATE: CreateStep,
    TaskKind.UPDATE: UpdateStep,
    TaskKind.DELETE: DeleteStep,
    TaskKind.CLEANUP: CleanupStep,
    TaskKind.SUSPEND: SuspendStep,
    TaskKind.RESUME: ResumeStep,
    TaskKind.CHECK: CheckStep,
    TaskKind.OBSERVE: ObserveStep,
    TaskKind.SNAPSHOT: SnapshotStep,
    TaskKind.DELETE_SNAPSHOT: DeleteSnapshotStep,
    TaskKind.ADOPT: AdoptStep,
    TaskKind.REFRESH: RefreshStep,
    TaskKind.SCALE: ScaleStep,
    TaskKind.SIGNAL: SignalStep,
}
