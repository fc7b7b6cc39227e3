"""Options of [stacks] that are declared in files of their own."""

from .environment_options import ENVIRONMENTS
from .fault_options import TASK_LOSSES
from .limit_options import STACK_LIMITS
from .signal_options import SIGNALS
from .trust_options import DEFERRED

MORE_OF_STACKS = [*STACK_LIMITS, *ENVIRONMENTS, *SIGNALS, *TASK_LOSSES, *DEFERRED]
