"""Software configs and deployments of one project, as the resources of its stacks have them.

A user can write any id into the row of a resource in Heat, by an adoption for example.  Heat itself asks
with the user's own context; an import has the whole database before it.  So nothing here is
found by an id alone: a thing is of the project by the column of its own row, and the resource that has it is
of a type that makes such things.
"""

from collections.abc import Collection, Iterable, Iterator

from ....db.rows import Resource
from ....resources.contract.plugin import ResourceType
from ....resources.heat.software_configs import ConfigType
from ....resources.heat.software_deployments import SoftwareDeployment
from ....template.residual import holds_secret
from ..heat.rows import HeatConfig, HeatDeployment, HeatResource
from ..mapping.software import Secret, SoftwareOwner


class ProjectSoftware:
    """The configs and deployments that the resources of one tree have.  For one thread.

    :ivar secret_configs: ids of the configs in which secrets are, as far as resources have taken theirs.
    :param project_id: the tree's project; what is another one's is ignored.
    :param elsewhere: ids of things that Stoker has as those of resources of other trees.
    """

    def __init__(
        self,
        project_id: str,
        configs: Iterable[HeatConfig] = (),
        deployments: Iterable[HeatDeployment] = (),
        elsewhere: Collection[str] = (),
    ) -> None:
        self._configs = {
            item.id: item for item in configs if item.project_id == project_id and item.id not in elsewhere
        }
        self._deployments = {
            item.id: item
            for item in deployments
            if item.project_id == project_id and item.id not in elsewhere and item.config_id in self._configs
        }
        self._owners: dict[str, SoftwareOwner] = {}
        self._derived: dict[str, SoftwareOwner] = {}
        self.secret_configs: set[str] = set()

    def config(self, resource: HeatResource, plugin: ResourceType) -> HeatConfig | None:
        """Return the config that a resource names, if its type makes configs and it is the project's."""
        is_config = isinstance(plugin, ConfigType)
        return self._configs.get(resource.physical_id or "") if is_config else None

    def deployment(self, resource: HeatResource, plugin: ResourceType) -> HeatDeployment | None:
        """Return the deployment that a resource names, if its type makes them and it is the project's."""
        is_deployment = isinstance(plugin, SoftwareDeployment)
        return self._deployments.get(resource.physical_id or "") if is_deployment else None

    def has(self, resource: HeatResource, plugin: ResourceType) -> bool:
        """Return whether the thing that a resource names is the project's, and no other resource has it."""
        item = self.config(resource, plugin) or self.deployment(resource, plugin)
        return item is not None and item.id not in self._owners

    def take(self, resource: HeatResource, plugin: ResourceType, row: Resource, secrets: Secret) -> None:
        """Note whose the thing of a resource is; the config of a deployment was made for this one.

        :param secrets: finds the secrets of the resource.
        """
        owner = SoftwareOwner(row, secrets)
        config = self.config(resource, plugin)
        deployment = self.deployment(resource, plugin)
        for item in (config, deployment):
            if item is not None:
                self._owners[item.id] = owner
        if deployment is not None:
            self._derived[deployment.config_id] = owner
        if config is not None and holds_secret(row.properties):
            self.secret_configs.add(config.id)

    def configs(self) -> Iterator[tuple[HeatConfig, SoftwareOwner]]:
        """Yield the configs of the tree's resources, each with its owner."""
        owners = {**self._derived, **self._owners}
        yield from ((self._configs[key], owner) for key, owner in owners.items() if key in self._configs)

    def deployments(self) -> Iterator[tuple[HeatDeployment, SoftwareOwner]]:
        """Yield the deployments of the tree's resources, each with its owner."""
        owners = self._owners.items()
        yield from ((self._deployments[key], owner) for key, owner in owners if key in self._deployments)
