"""The parts that a feature has in the programs, which `cli/` composes of a list of features."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Feature:
    """A part of the product that the kernel does not know.

    It has a field for each kind of part that a feature has by now.

    :ivar name: name of its folder.
    :ivar commands: its commands of ``stoker-manage`` by name, each as ``module:class`` below `cli/commands`:
        commands read the configuration, as nothing outside of `cli/` does.  The module is imported when the
        command runs.
    """

    name: str
    commands: Mapping[str, str] = field(default_factory=dict)
