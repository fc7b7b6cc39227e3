"""Errors of the use cases, one for each different reaction of a caller."""


class NotUpdatable(Exception):
    """The stack cannot be updated as it is now; the text says why."""


class Changing(Exception):
    """Other requests changed the stack each time that this update was compiled; try again."""


class ActionInProgress(Exception):
    """Another action on the stack has not ended."""

    def __init__(self, stack_name: str, action: str) -> None:
        super().__init__(f"Stack {stack_name} already has an action ({action}) in progress.")


class NotAvailable(Exception):
    """The resource is not made yet."""

    def __init__(self, resource: str) -> None:
        super().__init__(f"The Resource ({resource}) is not available.")


class AmbiguousId(Exception):
    """Several resources of the stack have the physical id."""

    def __init__(self, physical_id: str) -> None:
        super().__init__(f"Multiple resources were found with the physical ID ({physical_id}).")


class TemplateNotFetched(Exception):
    """A template that a request names by its address cannot be had; the text says why."""


class NoContainers(Exception):
    """The caller's cloud has no Swift."""

    def __init__(self) -> None:
        super().__init__(
            "files_container is not supported: the cloud has no Swift; send the files in the request"
        )


class ContainerNotRead(Exception):
    """The files of a container cannot be had."""

    def __init__(self, container: str, reason: str) -> None:
        super().__init__(f"Could not fetch files from container {container:.255}, reason: {reason}")


class ResourceReplaced(Exception):
    """The resource of this name is not the one that was meant."""


class ConfigInUse(Exception):
    """A software config cannot be deleted, because a deployment refers to it."""

    def __init__(self, config_id: str) -> None:
        super().__init__(f"Software config with id {config_id} can not be deleted as it is referenced.")


class UnknownConfig(Exception):
    """A software deployment names a config that the project does not have."""

    def __init__(self, config_id: str | None) -> None:
        super().__init__(f"Data supplied was not valid: Config with id {config_id} not found")


class InvalidHook(Exception):
    """The breakpoint to clear does not exist, or holds nothing."""
