"""Topics, methods and versions of the messages between Stoker's processes.

Every message is a cast that carries ids only.  It may be lost, doubled, late or out of order, and nothing
but latency may change: the database says what is to be done, a message says where to look.

========== ============ ======= ========================================================
method     to           since   arguments
========== ============ ======= ========================================================
run_tasks  any one      1.0     traversal: str, tasks: list[int]
cancel     all          1.0     traversal: str, spared: list[int]
stop_tasks one host     1.0     claims: list[[task id, attempt]]: stop them, or say that you do not hold them
look_now   all          1.0     none: look at the ring's members now, and report
========== ============ ======= ========================================================

Additions raise the minor version and keep old arguments; a sender is pinned to the version that all its
neighbours know.
"""

WORK_TOPIC = "stoker.work"
VERSION = "1.0"
