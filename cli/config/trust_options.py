"""Options of the rights that users delegate to their stacks."""

from oslo_config import cfg

DEFERRED = [
    cfg.StrOpt(
        "deferred_auth_method",
        default="trusts",
        help="How Stoker acts for a user after the user's token has expired. trusts: by a trust per "
        "stack, from its user to the account of [trustee], or of [keystone_authtoken] if "
        "[trustee] names none. none: resource types that need it cannot work. Entry points add "
        "other methods. Without Keystone, or while no installed resource type needs it, nothing "
        "is delegated and Keystone is not asked.",
    ),
    cfg.ListOpt(
        "trusts_delegated_roles",
        default=[],
        help="Names of the roles to delegate. Empty: all roles that the user has in the project. With "
        "fewer a stack may do less.",
    ),
    cfg.BoolOpt(
        "allow_trusts_redelegation",
        default=False,
        help="Whether further trusts can be made with the trust of a stack, as deep as Keystone allows. "
        "Stacks in another region (`region_name` of OS::Heat::Stack) need it: the orchestration service "
        "there makes a trust of its own. False: a service that gets a token of the trust cannot act longer "
        "than the token. Stacks that exist already keep their trusts.",
    ),
]
