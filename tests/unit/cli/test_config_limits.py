"""A limit protects the service, and is far above real use: at least four times what is known of it."""

import pytest
from stoker.cli.config.sections import make_options
from stoker.cli.http.limits import RequestLimits

REAL_USE = {
    "max_depth": 7,  # TripleO; its installer sets max_nested_stack_depth to that.
    "max_resources": 322,  # The smallest overcloud of TripleO.
    "max_software_config": 355_717,  # Magnum's standard cluster, Kubernetes on Fedora CoreOS.
    "max_software_of_server": 355_717,
    "max_template": 128 * 1024,
}
DEFAULTS = {option.name: option.default for option in make_options()["stacks"]}


@pytest.mark.parametrize("name", REAL_USE)
def test_a_limit_is_four_times_what_others_send(name: str) -> None:
    assert DEFAULTS[name] >= 4 * REAL_USE[name]


def test_limits_leave_room_for_each_other() -> None:
    assert DEFAULTS["max_software_of_server"] >= 4 * DEFAULTS["max_software_config"]
    assert RequestLimits().body >= 4 * DEFAULTS["max_software_config"]
