"""Nova's fake driver, whose snapshots have bytes, and whose work takes time where a flavor says so.

Without bytes an image would never become active. Real hosts take seconds where the fake ones take nothing: `stand:seconds` among a flavor's extra
specifications is how long a host takes to make, to snapshot and to remove one of its servers.
"""

import io
import time

from nova.image import glance
from nova.virt import fake


def work(instance):
    time.sleep(float(instance.flavor.extra_specs.get("stand:seconds", 0)))


class Driver(fake.FakeDriver):
    def spawn(self, context, instance, *arguments, **named):
        work(instance)
        super().spawn(context, instance, *arguments, **named)

    def destroy(self, context, instance, *arguments, **named):
        work(instance)
        super().destroy(context, instance, *arguments, **named)

    def snapshot(self, context, instance, image_id, update_task_state):
        work(instance)
        super().snapshot(context, instance, image_id, update_task_state)
        metadata = {"status": "active", "disk_format": "raw", "container_format": "bare"}
        glance.API().update(context, image_id, metadata, io.BytesIO(b"no system" * 1000))
