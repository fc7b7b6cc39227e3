"""Nova's hypervisor for tests, with an identity that survives a restart and with snapshots that end."""

import io
import uuid

from nova.image import glance
from nova.virt import fake

NODE = str(uuid.uuid5(uuid.NAMESPACE_DNS, "cloud"))
"""The harness writes the same into Nova's file compute_id."""


class Cloud(fake.FakeDriver):
    """One host with room for everything.  It forgets its servers when nova-compute ends."""

    capabilities = {**fake.FakeDriver.capabilities, "supports_migrate_to_same_host": True}

    def get_available_resource(self, nodename):
        return {**super().get_available_resource(nodename), "uuid": NODE}

    def get_nodenames_by_uuid(self, refresh=False):
        return {NODE: self.get_available_nodes()[0]}

    def attach_interface(self, context, instance, image_meta, vif):
        self._interfaces.pop(vif["id"], None)  # Those of destroyed servers are still counted.
        super().attach_interface(context, instance, image_meta, vif)

    def snapshot(self, context, instance, image_id, update_task_state):
        super().snapshot(context, instance, image_id, update_task_state)
        fields = {"disk_format": "raw", "container_format": "bare"}
        glance.API().update(context, image_id, fields, io.BytesIO(b"a snapshot"))
