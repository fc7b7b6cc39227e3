"""The service that the parent of the API's workers makes: neither connections nor threads are in it."""

import os
import pathlib
import threading

from oslo_config import cfg
from stoker.cli.config import options
from stoker.cli.programs.api import make_service
from stoker.db.engine import Database
from stoker.db.schema import upgrade

DESCRIPTORS = "/proc/self/fd"
OPTIONS = """
[DEFAULT]
transport_url = rabbit://nobody@127.0.0.1:1/
[database]
connection = {url}
[secrets]
key = MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=
[api]
auth_strategy = none
[oslo_messaging_notifications]
driver = messagingv2
"""


def test_the_parent_leaves_no_connection_and_no_thread_to_its_workers(tmp_path: pathlib.Path) -> None:
    url = f"sqlite:///{tmp_path}/stoker.sqlite"
    database = Database(url)
    upgrade.upgrade(database)
    database.close()
    path = tmp_path / "stoker.conf"
    path.write_text(OPTIONS.format(url=url))
    cfg.CONF.reset()  # Another test of the process may have read a configuration.
    conf = options.load([], program="stoker-api", files=[path])
    try:
        make_service(conf)  # Whatever Python opens once is open now.
        threads = set(threading.enumerate())
        descriptors = set(os.listdir(DESCRIPTORS))
        service = make_service(conf)
        assert not service.parts.database.clock.is_sure
        assert set(threading.enumerate()) <= threads
        assert set(os.listdir(DESCRIPTORS)) <= descriptors
        service.parts.start()
        assert {"outbox", "notifications"} <= {thread.name for thread in threading.enumerate()}
        service.parts.close()
    finally:
        conf.reset()
