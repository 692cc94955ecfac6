"""A driver of Cinder's that keeps no bytes: volumes are records alone."""

from cinder.volume import driver


class Driver(driver.VolumeDriver):
    VERSION = "1.0"

    def check_for_setup_error(self):
        pass

    def create_volume(self, volume):
        pass

    def delete_volume(self, volume):
        pass

    def clone_image(self, context, volume, image_location, image_meta, image_service):
        return {}, True

    def create_snapshot(self, snapshot):
        pass

    def delete_snapshot(self, snapshot):
        pass

    def ensure_export(self, context, volume):
        pass

    def create_export(self, context, volume, connector):
        pass

    def remove_export(self, context, volume):
        pass

    def initialize_connection(self, volume, connector):
        return {"driver_volume_type": "fake", "data": {}}

    def terminate_connection(self, volume, connector, **_):
        pass

    def _update_volume_stats(self):
        self._stats = {"volume_backend_name": "stand", "vendor_name": "virtbench", "driver_version": self.VERSION, "storage_protocol": "fake",
                       "total_capacity_gb": "infinite", "free_capacity_gb": "infinite"}
