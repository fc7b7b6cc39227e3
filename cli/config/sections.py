"""The settings of the programs: the dataclasses that declare them, and the section of each."""

import typing
from collections.abc import Iterator

from oslo_config import cfg

from ...api.settings import ApiLimits, ApiSettings, AuditSettings, AuthSettings
from ...conductor.settings import ConductorSettings, StackUpkeep
from ...db.connections import DatabaseSettings
from ...db.settings import InstallationSettings
from ...engine.context import EngineSettings
from ...engine.quotas import ProjectLimits
from ...engine.signal_urls import GuestAddresses
from ...engine.template_urls import FetchLimits
from ...features.preflight.settings import PreflightSettings
from ...features.registry import Feature, load
from ...keystone.client_options import ClientSettings, ParameterChecks
from ...keystone.delegated_auth import DelegationSettings
from ...keystone.remote_clouds import RemoteCloudSettings
from ...observe.metrics import MetricsSettings
from ...resources.guests import ConfigTransport
from ...resources.heat.software_deployments import SignalTransport
from ...ring.settings import CoordinationSettings, HostSettings
from ...rpc.level import UpgradeSettings
from ...rpc.notifier import NotificationSettings
from ...sealing.sealer import SealingSettings
from ...template.compile import Region
from ...template.operator_environment import OperatorFiles
from ...template.sandbox.limits import HelperLimits
from ..features import FEATURES
from ..http.limits import ConnectionLimits, RequestLimits, ServerSettings
from .declared import read_section, settings_of
from .errors import WrongConfiguration

T = typing.TypeVar("T")


class Section(typing.Generic[T]):
    """An attribute of `Settings`: a dataclass whose settings are options of a section.

    :param name: ``DEFAULT`` is the section that other programs call so, too.
    """

    def __init__(self, name: str, owner: type[T]) -> None:
        self.name = name
        self.owner = owner

    def __get__(self, settings: "Settings", of: type) -> T:
        """Return the dataclass with the values of the configuration.

        :raises WrongConfiguration: values contradict each other.
        """
        return self.read(settings.conf)

    def read(self, conf: cfg.ConfigOpts) -> T:
        """Return the dataclass with the values of a configuration.

        :raises WrongConfiguration: values contradict each other.
        """
        try:
            return read_section(conf if self.name == "DEFAULT" else conf[self.name], self.owner)
        except ValueError as error:
            raise WrongConfiguration(f"[{self.name}]: {error}") from error


class Settings:
    """All settings with the values of a configuration; each attribute is read when it is asked for.

    So what can change without a restart is that of this moment.
    """

    host = Section("DEFAULT", HostSettings)
    notifications = Section("DEFAULT", NotificationSettings)
    database = Section("database", DatabaseSettings)
    coordination = Section("coordination", CoordinationSettings)
    conductor = Section("conductor", ConductorSettings)
    auth = Section("api", AuthSettings)
    server = Section("api", ServerSettings)
    api = Section("api", ApiSettings)
    api_limits = Section("api", ApiLimits)
    requests = Section("api", RequestLimits)
    connections = Section("api", ConnectionLimits)
    clients = Section("clients", ClientSettings)
    parameter_checks = Section("clients", ParameterChecks)
    region = Section("cfn", Region)
    guests = Section("guests", GuestAddresses)
    config_transport = Section("guests", ConfigTransport)
    signal_transport = Section("guests", SignalTransport)
    metrics = Section("metrics", MetricsSettings)
    installation = Section("stacks", InstallationSettings)
    engine = Section("stacks", EngineSettings)
    project = Section("stacks", ProjectLimits)
    upkeep = Section("stacks", StackUpkeep)
    operator_files = Section("stacks", OperatorFiles)
    fetches = Section("stacks", FetchLimits)
    preflight = Section("stacks", PreflightSettings)
    remote_clouds = Section("stacks", RemoteCloudSettings)
    delegation = Section("stacks", DelegationSettings)
    sealing = Section("secrets", SealingSettings)
    audit = Section("audit", AuditSettings)
    upgrade = Section("upgrade_levels", UpgradeSettings)
    expressions = Section("yaql", HelperLimits)

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self.conf = conf

    def of_feature(self, feature: Feature) -> typing.Any:
        """Return the settings of a feature; None: it has none.

        :raises WrongConfiguration: values contradict each other.
        """
        section = _section_of(feature)
        return None if section is None else section.read(self.conf)


def _section_of(feature: Feature) -> Section[typing.Any] | None:
    return Section(feature.name, load(feature.settings)) if feature.settings else None


def sections() -> Iterator[Section[typing.Any]]:
    """Yield all sections; one that several dataclasses share comes as often."""
    yield from (section for section in vars(Settings).values() if isinstance(section, Section))
    yield from (section for section in map(_section_of, FEATURES) if section is not None)


def make_options() -> dict[str, list[cfg.Opt]]:
    """Return the options of all declared settings, by section."""
    options: dict[str, list[cfg.Opt]] = {}
    for section in sections():
        options.setdefault(section.name, []).extend(
            declared.to_option() for declared in settings_of(section.owner)
        )
    return options
