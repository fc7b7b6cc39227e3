"""Options of the notifications, as Heat calls them."""

from oslo_config import cfg

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
