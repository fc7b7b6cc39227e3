"""The operator's policy file, which is read again when it changes."""

import os
import pathlib

from oslo_config import cfg
from oslo_policy import opts
from stoker.cli.wiring.policy import LOOK_EVERY, Enforcer, list_rules

LATER = 4e9
"""The time of a change, in seconds since the epoch: no clock shows it twice."""


def test_a_changed_file_counts_at_the_next_look(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text('"stacks:index": "!"\n')
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    opts.set_defaults(conf, str(file))
    clock = [7.0]
    enforcer = Enforcer(conf, monotonic=lambda: clock[0])
    enforcer.register_defaults(list_rules())

    def may_list() -> bool:
        caller = {"project_id": "p", "roles": ["reader"]}
        return bool(enforcer.enforce("stacks:index", {"project_id": "p"}, caller))

    assert not may_list()
    file.write_text("{}\n")
    os.utime(file, (LATER, LATER))
    clock[0] += 0.9 * LOOK_EVERY
    assert not may_list()
    clock[0] += 0.2 * LOOK_EVERY
    assert may_list()
    file.write_text('"stacks:index": "!"\n')
    enforcer.load_rules(force_reload=True)
    assert not may_list()
