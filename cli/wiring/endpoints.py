"""The endpoints of services that conductors call, from the configuration."""

from oslo_config import cfg

from ...conductor.steps.endpoints import Endpoints
from ..config.client_options import client_options
from ..config.sections import Settings


def make_endpoints(conf: cfg.ConfigOpts) -> Endpoints:
    """Make the maker of adapters of services, of this cloud and of others.

    :raises WrongConfiguration: an option of [clients] is wrong.
    """
    remote = Settings(conf).remote_clouds
    return Endpoints(client_options(conf), remote.hosts, remote.proxy)
