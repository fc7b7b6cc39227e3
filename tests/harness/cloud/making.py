"""Makes the databases of a cloud once, and keeps them for all runs with these versions and options."""

import hashlib
import pathlib
import shutil
import tempfile
from concurrent.futures import ThreadPoolExecutor

from harness.cloud import configuration, contents
from harness.cloud.database import pack
from harness.cloud.layout import HOME, INSTALLED, Layout
from harness.cloud.running import Running, run
from harness.cloud.services import ALL, KEYSTONE, Service
from harness.once import locked

KEPT = HOME / "databases"
VERSIONS = 3
"""Archives that are kept, those made last: checkouts of several branches may share an environment."""
AT_ONCE = 3
MAKERS = ("configuration.py", "contents.py", "layout.py", "making.py", "services.py")


def prepare() -> pathlib.Path:
    """The folder of the archives; makes them where there are none of this version."""
    prepared = KEPT / _version()
    KEPT.mkdir(exist_ok=True)
    with locked(KEPT / "lock"):
        if not prepared.exists():
            with tempfile.TemporaryDirectory(prefix="stoker-cloud-making-") as folder:
                _make(pathlib.Path(folder), prepared)
            versions = [folder for folder in KEPT.iterdir() if folder.is_dir()]
            for old in sorted(versions, key=lambda folder: folder.stat().st_mtime)[:-VERSIONS]:
                shutil.rmtree(old)
    return prepared


def _version() -> str:
    """A short text that changes with everything that the databases depend on."""
    files = [file for file in INSTALLED.rglob("*") if file.is_file() and "__pycache__" not in file.parts]
    files += [pathlib.Path(__file__).parent / name for name in MAKERS]
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(f"{file.name}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def _make(folder: pathlib.Path, prepared: pathlib.Path) -> None:
    cloud = Running(folder, None)
    try:
        cloud.start_servers()
        for service in ALL:
            for name in service.databases:
                cloud.database.execute(f"CREATE DATABASE {name}")
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for _ in pool.map(lambda service: _make_schema(cloud.layout, service), ALL):
                pass
        (cloud.layout.state("nova") / "compute_id").write_text(str(configuration.NODE))
        (cloud.layout.state("glance") / "images").mkdir()
        cloud.start([KEYSTONE])
        contents.make_accounts(cloud.layout)
        cloud.start()
        run(cloud.layout, "nova-manage", "--config-file", _config("nova", cloud.layout), *DISCOVER)
        contents.make_things(cloud.layout)
        cloud.stop_services()
        unfinished = prepared.with_suffix(".unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        unfinished.mkdir()
        cloud.database.keep(unfinished / "database.tar.gz")
        pack(folder, unfinished / "state.tar.gz", "state")
        unfinished.rename(prepared)
    finally:
        cloud.close()


DISCOVER = ("cell_v2", "discover_hosts")


def _config(name: str, layout: Layout) -> str:
    return next(service for service in ALL if service.name == name).path(layout)


def _make_schema(layout: Layout, service: Service) -> None:
    for program, *arguments in service.schema(layout):
        run(layout, program, "--config-file", service.path(layout), *arguments)
