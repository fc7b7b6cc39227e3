"""The parts that the parent process of the API makes for its workers: neither connections nor threads."""

import os
import pathlib
import threading

from oslo_config import cfg
from stoker.cli.config import options
from stoker.cli.wiring.api import make_inherited
from stoker.cli.wiring.database import open_database
from stoker.db.engine import Database
from stoker.db.schema import upgrade

DESCRIPTORS = "/proc/self/fd"


def test_the_parent_leaves_no_connection_and_no_thread_to_its_workers(tmp_path: pathlib.Path) -> None:
    url = f"sqlite:///{tmp_path}/stoker.sqlite"
    database = Database(url)
    upgrade.upgrade(database)
    database.close()
    path = tmp_path / "stoker.conf"
    key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
    path.write_text(f"[database]\nconnection = {url}\n[secrets]\nkey = {key}\n[api]\nauth_strategy = none\n")
    cfg.CONF.reset()  # Another test of the process may have read a configuration.
    conf = options.load([], program="stoker-api", files=[path])
    try:
        make_inherited(conf)  # Whatever Python opens once is open now.
        threads = set(threading.enumerate())
        descriptors = set(os.listdir(DESCRIPTORS))
        inherited = make_inherited(conf)
        assert set(threading.enumerate()) <= threads
        assert set(os.listdir(DESCRIPTORS)) <= descriptors
        worker, _ = open_database(conf, engine=inherited.engine)
        assert worker.engine is inherited.engine
        worker.close()
    finally:
        conf.reset()
