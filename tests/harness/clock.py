"""Clocks of processes that are wrong."""

import pathlib

FOLDER = pathlib.Path(__file__).parent / "clocks"
"""First in PYTHONPATH it gives a process a clock that is ahead by the seconds in the file CLOCK_AHEAD."""
