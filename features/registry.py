"""The parts that a feature has in the programs, which `cli/` composes of a list of features."""

import importlib
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Feature:
    """A part of the product that the kernel does not know.

    A part is named as ``module:name``, and imported by the programs that have such parts: so a conductor does
    without the libraries of the API, and a command without both.  Empty: the feature has no such part.

    :ivar name: name of its folder.
    :ivar routes: its `Routes` of the API.
    :ivar rules: the rules of the policy for them, each a `Rule`.
    :ivar columns: a function that reads its fields in lists of stacks, as `ReadColumns`.
    :ivar metrics: its metrics, each a `Metric`.
    :ivar services: below `cli/wiring`, a function from the parts of a process and the `EngineContext` to what
        its handlers use, by type.
    :ivar settings: the dataclass that declares its settings: the options of the section with its name.
    :ivar duties: a function from its settings and the `DutyServices` of a conductor to its duties, each a
        `DutyEntry` by its name; none: the settings disable them.
    :ivar commands: its commands of ``stoker-manage`` by name, each as ``module:class`` below `cli/commands`.
    """

    name: str
    routes: str = ""
    rules: str = ""
    services: str = ""
    columns: str = ""
    metrics: str = ""
    settings: str = ""
    duties: str = ""
    commands: Mapping[str, str] = field(default_factory=dict)


def load(part: str) -> typing.Any:
    """Import a part of a feature.

    :param part: ``module:name`` below the root of the product.
    """
    module, _, name = part.partition(":")
    return getattr(importlib.import_module(f"{_ROOT}.{module}"), name)


_ROOT = __package__.rpartition(".")[0]
