"""Options of messages: notifications, as Heat calls them, and versions during a rolling upgrade."""

from oslo_config import cfg

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
