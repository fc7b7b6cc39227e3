"""Options for the time in which daemons of two releases run beside each other."""

from oslo_config import cfg

from ...rpc.contract import VERSION, VERSIONS
from ...rpc.level import AUTO

UPGRADE_LEVELS = [
    cfg.StrOpt(
        "conductor",
        default=AUTO,
        mutable=True,
        choices=[
            (AUTO, "what all conductors understand that report in the database"),
            *((version, f"what {who} understand") for version, who in VERSIONS.items()),
        ],
        help="Version of the messages to conductors, at the most. A version is a pin, which has to be taken "
        "away when all conductors are upgraded. A conductor refuses what is newer than it understands; what "
        f"the message was about is done later then. Those of this release understand {VERSION}.",
    ),
]
