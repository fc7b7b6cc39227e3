"""How a resource type declares implied dependencies; engine/planning/implied.py finds them in a template.

Two resources can depend on each other although neither refers to the other: a port gets its address from a
subnet, and all that they have in common is the network.  Heat calls this ``add_dependencies``.
"""

from dataclasses import dataclass
from functools import cached_property

Names = tuple[str, ...]
"""Names of one property, the present one and deprecated ones; `EACH` alone: the items of a list."""
EACH: Names = ("*",)


@dataclass(frozen=True)
class ImpliedDependency:
    """A dependency on all resources of a type that name the same thing.

    A path is written ``networks.*.network``: of each item of the list ``networks`` the key ``network``.
    ``network|network_id`` are two names of one property.  After ``>`` the path continues in the properties of
    the resource of the stack that is referred to: ``port_id > network``.

    Two values are the same thing if they are the same text, the same reference, or the same function of the
    same arguments.  A name and the id that belongs to it are not: no service is called to find dependencies.

    :ivar own: path of the property that names the thing.
    :ivar type: name of the other resources' type, in the template or after the environment's mapping.
    :ivar theirs: path of the property by which they name it.
    """

    own: str
    type: str
    theirs: str

    @cached_property
    def own_path(self) -> tuple[tuple[Names, ...], ...]:
        """Return `own` in parts: for each resource on the way its properties, for each of these its names."""
        return _parsed(self.own)

    @cached_property
    def their_path(self) -> tuple[tuple[Names, ...], ...]:
        """Return `theirs` in parts, in the same way."""
        return _parsed(self.theirs)


def _parsed(path: str) -> tuple[tuple[Names, ...], ...]:
    return tuple(
        tuple(tuple(name.strip() for name in part.split("|")) for part in hop.split("."))
        for hop in path.split(">")
    )
