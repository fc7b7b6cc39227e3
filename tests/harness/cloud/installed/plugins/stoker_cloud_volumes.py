"""A driver of Cinder's whose volumes are rows in Cinder's database and nothing else."""

from cinder import interface
from cinder.volume import driver


@interface.volumedriver
class Nothing(driver.VolumeDriver):
    """Does whatever is asked at once, for there is nothing to do."""

    VERSION = "1.0"

    def check_for_setup_error(self):
        pass

    def create_volume(self, volume):
        pass

    def create_volume_from_snapshot(self, volume, snapshot):
        pass

    def create_cloned_volume(self, volume, src_vref):
        pass

    def delete_volume(self, volume):
        pass

    def create_snapshot(self, snapshot):
        pass

    def delete_snapshot(self, snapshot):
        pass

    def extend_volume(self, volume, new_size):
        pass

    def copy_image_to_volume(self, context, volume, image_service, image_id, disable_sparse=False):
        pass

    def copy_volume_to_image(self, context, volume, image_service, image_meta):
        image_service.update(context, image_meta["id"], {}, b"nothing")

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        return {}, True

    def retype(self, context, volume, new_type, diff, host):
        return True, None

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        return {"driver_volume_type": "fake", "data": {"volume_id": volume["id"]}}

    def terminate_connection(self, volume, connector, **kwargs):
        pass

    def get_volume_stats(self, refresh=False):
        return {
            "volume_backend_name": self.configuration.safe_get("volume_backend_name"),
            "vendor_name": "Stoker",
            "driver_version": self.VERSION,
            "storage_protocol": "fake",
            "total_capacity_gb": 1000000,
            "free_capacity_gb": 1000000,
            "provisioned_capacity_gb": 0,
            "max_over_subscription_ratio": 1000,
            "thin_provisioning_support": True,
            "reserved_percentage": 0,
            "multiattach": True,
        }
