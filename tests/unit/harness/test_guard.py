"""The guard ends only the processes of the run that was killed."""

import subprocess

from harness import guard, proctree


def test_only_the_very_process_is_ended_not_one_that_was_given_its_pid_later() -> None:
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:
        proc = proctree.read(process.pid)
        assert proc is not None
        guard.clean_up([f"process {proc.pid} {proc.started - 1}"])
        assert proctree.is_alive(proc)
        guard.clean_up([f"process {proc.pid} {proc.started}"])
        assert not proctree.is_alive(proc)
