"""An installation with servers of its own, for benchmarks of conductors."""

import contextlib
import pathlib
import tempfile
from collections.abc import Iterator

from harness.deployment import Deployment
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ
from harness.third_party import with_plugins


@contextlib.contextmanager
def own_installation(*hosts: str, options: str = "", has_plugins: bool = False) -> Iterator[Deployment]:
    """An API and conductors of these names, as long as the context.

    :param options: lines of the configuration.
    :param has_plugins: whether the tests' resource types are installed.
    """
    with (
        tempfile.TemporaryDirectory() as folder,
        RabbitMQ() as broker,
        PostgreSQL() as postgresql,
        Etcd() as etcd,
    ):
        directory = pathlib.Path(folder)
        deployment = Deployment(
            directory,
            database_url=postgresql.create_database(),
            transport_url=broker.create_vhost(),
            backend_url=etcd.url,
            options=options,
            env=with_plugins(directory / "plugins") if has_plugins else None,
        )
        try:
            deployment.start_api()
            deployment.start_conductors(*hosts)
            yield deployment
        finally:
            deployment.stop()
