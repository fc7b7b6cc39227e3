"""Writes software configs and deployments into Heat's database: those of one project, and no others.

The row of a resource in Heat can name the thing of anybody, for Heat asks with the user's own context.  So
every statement here has the project's condition, and what is removed was a resource's own by its type, too.
"""

from collections.abc import Collection, Iterator, Sequence

import sqlalchemy as sa

from ....resources.contract.errors import UnknownType
from ....resources.registry import ResourceRegistry
from ....shapes import Json, JsonMap
from ..heat import tables
from ..heat.rows import HeatConfig, HeatDeployment, HeatResource, HeatStack, HeatTree, Refused
from ..mapping.software import makes_software
from .statements import Columns, HeatRows

MOST_NAMES = 10
"""Names of a type that lead to each other by an environment."""
OTHER_PROJECT = "Heat has a software config or deployment {} of another project: compare the two databases"


class SoftwareWriter:
    """Writes the configs and deployments of one project."""

    def __init__(self, rows: HeatRows, project_id: str) -> None:
        self._rows = rows
        self._project_id = project_id

    def put(self, configs: Sequence[HeatConfig], deployments: Sequence[HeatDeployment]) -> None:
        """Store configs, and then deployments.

        :raises Refused: Heat has a row with such an id of another project.
        """
        # A deployment names its config, which must be there.
        for config in configs:
            self._put(tables.software_config, config.id, _columns(config))
        for deployment in deployments:
            self._put(tables.software_deployment, deployment.id, _columns(deployment))

    def remove(self, ids: Collection[str]) -> None:
        """Remove configs and deployments of resources that Stoker has deleted, and the deployments' configs.

        What another resource in Heat names stays, and a config as long as a deployment of it is there.
        """
        r = tables.resource
        named = sa.select(r.c.physical_id).where(r.c.physical_id.in_(list(ids)))
        obsolete = set(ids) - set(self._rows.select(named))
        d = tables.software_deployment
        query = sa.select(d.c.id, d.c.config_id).where(d.c.id.in_(list(obsolete)), self._is_own(d))
        deployments = dict(map(tuple, self._rows.select_all(query)))
        self._rows.delete(d, "id", set(deployments))
        c = tables.software_config
        # A deployment's own config goes with it, unless another deployment or resource of Heat's uses it.
        configs = (obsolete - deployments.keys()) | set(deployments.values())
        own = set(self._rows.select(sa.select(c.c.id).where(c.c.id.in_(list(configs)), self._is_own(c))))
        used = sa.select(d.c.config_id).where(d.c.config_id.in_(list(own)))
        named = sa.select(r.c.physical_id).where(r.c.physical_id.in_(list(own)))
        self._rows.delete(c, "id", own - set(self._rows.select(used)) - set(self._rows.select(named)))

    def _is_own(self, table: sa.Table) -> sa.ColumnElement[bool]:
        return table.c.tenant == self._project_id

    def _put(self, table: sa.Table, key: str, columns: Columns) -> None:
        stored = self._rows.select(sa.select(table.c.tenant).where(table.c.id == key))
        if stored not in ([], [self._project_id]):
            raise Refused(OTHER_PROJECT.format(key))
        self._rows.put(table, key, {**columns, "tenant": self._project_id})


def own_software(tree: HeatTree, registry: ResourceRegistry) -> set[str]:
    """Return the ids that resources of a tree in Heat have of things that their types make.

    A type that an environment names by a pattern is not known, so its things stay in Heat.
    """
    return {
        row.physical_id
        for stack in (tree.root, *tree.stacks)
        for row in stack.resources
        if row.physical_id is not None and _makes_software(_type_of(row, stack, tree), registry)
    }


def _type_of(row: HeatResource, stack: HeatStack, tree: HeatTree) -> str:
    """Return the type of a resource, as its template and the environment name it; "": neither does."""
    template = tree.templates.get(row.template_id or stack.template_id)
    if template is None:
        return ""
    definition = next(_definitions(template.template, row.name), {})
    type_name = definition.get("type") or definition.get("Type")
    registered = template.environment.get("resource_registry") or {}
    for _ in range(MOST_NAMES):
        if not isinstance(type_name, str) or not isinstance(registered.get(type_name), str):
            break
        type_name = registered[type_name]
    return type_name if isinstance(type_name, str) else ""


def _definitions(template: JsonMap, name: str) -> Iterator[JsonMap]:
    for key in ("resources", "Resources"):
        section = template.get(key)
        definition: Json = section.get(name) if isinstance(section, dict) else None
        if isinstance(definition, dict) and "external_id" not in definition:
            yield definition


def _makes_software(type_name: str, registry: ResourceRegistry) -> bool:
    try:
        return makes_software(registry.get(type_name))
    except UnknownType:
        return False


def _columns(item: HeatConfig | HeatDeployment) -> Columns:
    """Return the columns of a row but its id and its project."""
    values = {name: value for name, value in vars(item).items() if name not in ("id", "project_id")}
    return {_RENAMED.get(name, name): value for name, value in values.items()}


_RENAMED = {"reason": "status_reason"}
"""Columns of Heat's tables that are called otherwise than the values of its rows."""
