"""Audit events of a running service, as the configuration says."""

import json
import pathlib
import re

import pytest
from client.serving import Service
from harness.templates import flat
from harness.waiting import wait_for
from oslo_config import cfg
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.config.options import GROUPS
from stoker.cli.wiring.api import make_audit

EVENT = re.compile(r"oslo\.messaging\.notification\.audit\.http\.response.*?(\{.*\})")


def test_the_driver_gets_the_events_of_changes(tmp_path: pathlib.Path) -> None:
    config = tmp_path / "audit.conf"
    config.write_text("[audit]\nrequests = changes\n[oslo_messaging_notifications]\ndriver = log\n")
    service = Service(tmp_path, conductors=1, config=config)
    try:
        service.call("POST", "/v1/p/stacks", {"stack_name": "s", "template": flat(1)})
        wait_for(lambda: EVENT.search(service.process.text()) is not None, 60, service.process.tail)
    finally:
        service.stop()
    match = EVENT.search(service.process.text())
    assert match is not None
    message = json.loads(match[1])
    assert message["event_type"] == "audit.http.response"
    assert message["payload"]["requestPath"] == "/v1/p/stacks"


def test_an_audit_without_a_driver_is_a_wrong_configuration() -> None:
    conf = cfg.ConfigOpts()
    conf.register_opts(GROUPS["audit"], "audit")
    conf.set_override("requests", "all", "audit")
    conf([])
    with pytest.raises(WrongConfiguration, match=r"\[oslo_messaging_notifications\] driver is missing"):
        make_audit(conf, None)
