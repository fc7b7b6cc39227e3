"""The configuration that `stoker serve` writes on its first start."""

import configparser
import pathlib

from stoker.cli.wiring.data_dir import config_file
from stoker.ring.timing import MembershipTiming

LONGEST_STALL = 8.0
"""Seconds for which a busy laptop may keep the one process of all conductors from running."""


def test_conductors_of_one_process_bear_a_stall_of_their_machine(tmp_path: pathlib.Path) -> None:
    config = configparser.ConfigParser(interpolation=None)
    config.read(config_file(tmp_path))
    options = config["coordination"]
    timing = MembershipTiming(
        options.getfloat("heartbeat"), options.getfloat("timeout"), options.getfloat("poll")
    )
    assert timing.self_stop > LONGEST_STALL
