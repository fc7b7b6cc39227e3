"""Options of what users hand over to stacks."""

from oslo_config import cfg

DEFERRED = [
    cfg.StrOpt(
        "deferred_auth_method",
        default="trusts",
        help="How what is done for a user goes on when his token has expired. trusts: by a trust for each "
        "stack, from its user to the account of [trustee], or where that section names none, of "
        "[keystone_authtoken]. none: resource types that need it cannot work. Others come by entry points. "
        "Nothing is handed over, and Keystone is not asked, while no resource type that is installed needs "
        "it, or without Keystone.",
    ),
    cfg.ListOpt(
        "trusts_delegated_roles",
        default=[],
        help="Roles that are handed over, by name. Empty: all that the user has in the project. Fewer let a "
        "stack do less.",
    ),
]
