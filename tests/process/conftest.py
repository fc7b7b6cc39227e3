"""The servers below the deployments of these tests."""

import pytest
from harness.deployment import Servers
from harness.etcd import Etcd
from harness.postgresql import PostgreSQL
from harness.rabbitmq import RabbitMQ


@pytest.fixture(scope="session")
def servers(rabbitmq: RabbitMQ, postgresql: PostgreSQL, etcd: Etcd) -> Servers:
    return Servers(rabbitmq, postgresql, etcd)
