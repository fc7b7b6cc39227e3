"""An installation without servers: SQLite, messages in memory, a group in a directory."""

import pathlib

from harness.programs import BIN, run
from stoker.sealing.sealer import Sealer

CONFIG = """\
[DEFAULT]
transport_url = kombu+memory://
[database]
connection = sqlite:///{folder}/stoker.sqlite
[coordination]
backend_url = file://{folder}/group
[secrets]
key = {key}
[api]
auth_strategy = none
{workers}{api}"""


def write_config(folder: pathlib.Path, api: str = "") -> pathlib.Path:
    """Write the configuration file of an installation below the folder; return its path.

    :param api: more lines of the section ``[api]``, and further sections.
    """
    path = folder / "stoker.conf"
    # Most tests want one process: of many they would test the same with more memory.
    workers = "" if "workers" in api else "workers = 1\n"
    path.write_text(CONFIG.format(folder=folder, key=Sealer.generate_key(), workers=workers, api=api))
    return path


def set_up(folder: pathlib.Path, api: str = "") -> pathlib.Path:
    """Write the configuration, and set up the database, too."""
    path = write_config(folder, api)
    done = run([BIN / "stoker-manage", "--config-file", path, "db", "sync"])
    assert done.returncode == 0, done.stderr
    return path
