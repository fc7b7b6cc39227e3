"""Options of the notifications, as Heat calls them."""

from oslo_config import cfg

from ...rpc.notifier import LEVELS

NOTIFICATIONS = [
    cfg.StrOpt(
        "default_publisher_id",
        sample_default="orchestration.HOST",
        help="Publisher of the notifications. They are sent by what [oslo_messaging_notifications] driver "
        "names; without one, as is the default, there are none.",
    ),
    cfg.StrOpt(
        "default_notification_level",
        default="INFO",
        ignore_case=True,
        choices=LEVELS,
        help="Priority of the notifications, and with it the end of their topic; those of failures have "
        "ERROR.",
    ),
]
