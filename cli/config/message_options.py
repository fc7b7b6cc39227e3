"""Options of messages: notifications, as Heat calls them, and versions during a rolling upgrade."""

from oslo_config import cfg

from ...rpc.contract import VERSION, VERSIONS
from ...rpc.level import AUTO
from ...rpc.notifier import LEVELS

NOTIFICATIONS = [
    cfg.StrOpt(
        "default_publisher_id",
        sample_default="orchestration.HOST",
        help="Publisher of the notifications. The drivers in [oslo_messaging_notifications] driver "
        "send them; by default there is no driver, and no notification is sent.",
    ),
    cfg.StrOpt(
        "default_notification_level",
        default="INFO",
        ignore_case=True,
        choices=LEVELS,
        help="Priority of the notifications, which also ends their topic; those of failures have ERROR.",
    ),
]
AUDIT = [
    cfg.StrOpt(
        "requests",
        default="none",
        choices=[
            ("none", "no request"),
            ("changes", "requests that create, change or delete, and refused ones of that kind"),
            ("all", "reads, too, but for health checks, metrics and the pages of the console"),
        ],
        help="Requests of which the API sends audit events in the form of CADF, as notifications "
        "`audit.http.response`; [oslo_messaging_notifications] driver must name a driver. Events of all "
        "requests are as many as the requests.",
    ),
]
"""Options of the audit of requests."""
UPGRADE_LEVELS = [
    cfg.StrOpt(
        "conductor",
        default=AUTO,
        mutable=True,
        choices=[
            (AUTO, "the newest that all conductors in the database understand"),
            *((version, f"what {who} understand") for version, who in VERSIONS.items()),
        ],
        help="Newest version of messages that are sent to conductors. A version other than auto is a pin, to "
        "be removed when all conductors are upgraded. A conductor refuses a message that is newer than it "
        "understands; the work is then done later, found in the database. Conductors of this release "
        f"understand {VERSION}.",
    ),
]
