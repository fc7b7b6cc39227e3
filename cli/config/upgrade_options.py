"""Options of a rolling upgrade, while daemons of two releases run side by side."""

from oslo_config import cfg

from ...rpc.contract import VERSION, VERSIONS
from ...rpc.level import AUTO

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
