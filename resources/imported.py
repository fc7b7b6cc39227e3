"""Resources that an import has taken over from another service, without reading them from the cloud.

Their data has the mark `IMPORTED` until a step of Stoker's has read the remote resource.
"""

IMPORTED = "imported"
"""Key of the data of a resource that was not read from its service since."""
EXECUTIONS_BEFORE = "executions_before"
"""Key of the data of a workflow: ids of the executions that signals to the other service have begun, to be
deleted with it."""
IMPORTED_PORTS = "imported_ports"
"""Key of the data of a server: ids of the ports that the other service has made, to be deleted with it."""
