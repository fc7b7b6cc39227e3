"""The sections of the configuration: the dataclasses whose settings each of them has."""

import typing
from collections.abc import Mapping, Sequence

from oslo_config import cfg

from ...conductor.settings import ConductorSettings, StackUpkeep
from ...db.connections import DatabaseSettings
from ...db.settings import InstallationSettings
from ...engine.context import EngineSettings
from ...engine.quotas import ProjectLimits
from ...engine.template_urls import FetchLimits
from ...keystone.delegated_auth import DelegationSettings
from ...keystone.remote_clouds import RemoteCloudSettings
from ...template.operator_environment import OperatorFiles
from .declared import owners_in, read_section, settings_of
from .errors import WrongConfiguration

SECTIONS: Mapping[str, Sequence[type]] = {
    "database": [DatabaseSettings],
    "conductor": [ConductorSettings],
    "stacks": [
        InstallationSettings,
        EngineSettings,
        ProjectLimits,
        StackUpkeep,
        OperatorFiles,
        FetchLimits,
        RemoteCloudSettings,
        DelegationSettings,
    ],
}
"""The sections in the order of the sample; ``DEFAULT`` is the one that other programs call so, too."""
SECTION_OF = {
    inner: section for section, owners in SECTIONS.items() for owner in owners for inner in owners_in(owner)
}
T = typing.TypeVar("T")


def options_of(section: str) -> list[cfg.Opt]:
    """Return the options of a section."""
    return [declared.to_option() for owner in SECTIONS[section] for declared in settings_of(owner)]


def read(conf: cfg.ConfigOpts, owner: type[T], **others: object) -> T:
    """Return settings with the values of the configuration.

    :param owner: a dataclass of `SECTIONS`, or one in such a dataclass.
    :param others: values of its fields that are no settings, by name.
    :raises WrongConfiguration: values contradict each other.
    """
    section = SECTION_OF[owner]
    try:
        return read_section(conf if section == "DEFAULT" else conf[section], owner, **others)
    except ValueError as error:
        raise WrongConfiguration(f"[{section}]: {error}") from error
