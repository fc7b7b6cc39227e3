"""The options of Heat's configuration, and those of Stoker that have the same effect.

The names are those of Heat 27 (2026.2).  The documentation shows this table, and ``stoker-manage config
from-heat`` applies it.
"""

import fnmatch
import typing
from collections.abc import Callable


def copied(text: str) -> str:
    """Return a value as it is."""
    return text


def limit(text: str) -> str:
    """Return a maximum: Heat has no limit at -1, Stoker at 0."""
    return "0" if text.strip() == "-1" else text


def address(text: str) -> str:
    """Return the address of a service, with Stoker's name for the project's id."""
    return text.replace("%(tenant_id)s", "%(project_id)s")


class HeatOption(typing.NamedTuple):
    """An option of Heat's, and its counterpart.

    :ivar section: the section in heat.conf, which may end with ``*``.
    :ivar name: the option's name; ``*`` for all others of the section.
    :ivar target: ``section.option`` of stoker.conf; ``*`` in it is what the pattern of the section or of the
        name stands for.  Empty: there is none.
    :ivar note: the difference, or the reason why there is none.
    :ivar convert: the value in stoker.conf; None: a value of Heat's means something else there.
    """

    section: str
    name: str
    target: str
    note: str = ""
    convert: Callable[[str], str] | None = copied

    def target_of(self, section: str, name: str) -> str:
        """Return the target for an option that this one stands for; empty: none."""
        if "*" not in self.target:
            return self.target
        part = section.removeprefix(self.section[:-1]) if self.section.endswith("*") else name
        return self.target.replace("*", part)


_ACCOUNTS = "Stoker makes no accounts at Keystone for guests: they sign with keys of their own."
_OWN_DATABASE = "Stoker's database is another one, with options of its own in `[database]`."
_OF_HEAT = "It belongs to a part that Stoker does not have."
_CACHE = "Stoker asks once for each request or step, and shares what it has found."

DEFAULT = "DEFAULT"
OPTIONS = (
    HeatOption(DEFAULT, "stack_action_timeout", "stacks.timeout"),
    HeatOption(DEFAULT, "max_template_size", "stacks.max_template", "", limit),
    HeatOption(DEFAULT, "max_json_body_size", "api.max_body", "It limits bodies of all kinds."),
    HeatOption(
        DEFAULT,
        "max_resources_per_stack",
        "stacks.max_resources",
        "Of one stack; nested ones have their own.",
        limit,
    ),
    HeatOption(DEFAULT, "max_nested_stack_depth", "stacks.max_depth"),
    HeatOption(
        DEFAULT, "max_stacks_per_tenant", "stacks.max_stacks_per_project", "The default of a quota.", limit
    ),
    HeatOption(DEFAULT, "max_snapshots_per_stack", "stacks.max_snapshots", "", limit),
    HeatOption(
        DEFAULT, "max_software_configs_per_tenant", "stacks.max_software_configs_per_project", "", limit
    ),
    HeatOption(
        DEFAULT,
        "max_software_deployments_per_tenant",
        "stacks.max_software_deployments_per_project",
        "",
        limit,
    ),
    HeatOption(DEFAULT, "max_events_per_stack", "stacks.max_events_per_stack"),
    HeatOption(DEFAULT, "event_purge_batch_size", "", "The purge chooses its pages."),
    HeatOption(DEFAULT, "hidden_stack_tags", "stacks.hidden_stack_tags"),
    HeatOption(DEFAULT, "environment_dir", "stacks.environment_dir"),
    HeatOption(DEFAULT, "template_dir", "stacks.template_dir"),
    HeatOption(
        DEFAULT,
        "template_fetch_timeout",
        "stacks.fetch_timeout",
        "Nothing is fetched before `template_url_hosts` names a host.",
    ),
    HeatOption(DEFAULT, "heat_metadata_server_url", "guests.metadata_url"),
    HeatOption(DEFAULT, "heat_waitcondition_server_url", "guests.waitcondition_url"),
    HeatOption(DEFAULT, "default_software_config_transport", "guests.default_software_config_transport"),
    HeatOption(DEFAULT, "default_deployment_signal_transport", "guests.default_deployment_signal_transport"),
    HeatOption(
        DEFAULT,
        "default_user_data_format",
        "",
        "The default is `HEAT_CFNTOOLS`, as Heat's; name another in the template.",
    ),
    HeatOption(DEFAULT, "default_notification_level", "DEFAULT.default_notification_level"),
    HeatOption(DEFAULT, "default_publisher_id", "DEFAULT.default_publisher_id"),
    HeatOption(DEFAULT, "trusts_delegated_roles", "stacks.trusts_delegated_roles"),
    HeatOption(DEFAULT, "allow_trusts_redelegation", "stacks.allow_trusts_redelegation"),
    HeatOption(
        DEFAULT,
        "deferred_auth_method",
        "stacks.deferred_auth_method",
        "`trusts` only; passwords are not stored.",
        None,
    ),
    HeatOption(
        DEFAULT,
        "reauthentication_auth_method",
        "",
        "A step takes a new token by the trust when the old one has expired.",
    ),
    HeatOption(DEFAULT, "region_name_for_services", "clients.region_name"),
    HeatOption(
        DEFAULT,
        "region_name_for_shared_services",
        "clients_glance.region_name",
        "Of each shared service: `clients_cinder`, too.",
        None,
    ),
    HeatOption(DEFAULT, "shared_services_types", "", "See `region_name_for_shared_services`."),
    HeatOption(DEFAULT, "client_retry_limit", "clients.connect_retries"),
    HeatOption(DEFAULT, "max_nova_api_microversion", "clients_nova.max_microversion"),
    HeatOption(DEFAULT, "max_cinder_api_microversion", "clients_cinder.max_microversion"),
    HeatOption(DEFAULT, "max_ironic_api_microversion", "clients_ironic.max_microversion"),
    HeatOption(
        DEFAULT, "action_retry_limit", "stacks.resource_retries", "It counts retries of one step.", None
    ),
    HeatOption(
        DEFAULT, "host", "DEFAULT.host", "The name on the ring: each conductor needs another one.", None
    ),
    HeatOption(DEFAULT, "num_engine_workers", "", "Start as many conductors: one process each."),
    HeatOption(DEFAULT, "convergence_engine", "", "All stacks are worked on by all conductors."),
    HeatOption(
        DEFAULT, "error_wait_time", "", "Steps that run when another one fails end as they would otherwise."
    ),
    HeatOption(
        DEFAULT,
        "engine_life_check_timeout",
        "coordination.timeout",
        "The group of conductors says who is alive.",
        None,
    ),
    HeatOption(DEFAULT, "periodic_interval", "", "The duties have intervals of their own."),
    HeatOption(DEFAULT, "metadata_put_timeout", "", "Metadata is read from the database."),
    HeatOption(
        DEFAULT, "max_interface_check_attempts", "", "An interface is polled until the resource times out."
    ),
    HeatOption(DEFAULT, "max_server_name_length", "", "Stoker does not shorten names."),
    HeatOption(
        DEFAULT,
        "auth_encryption_key",
        "secrets.key",
        "Stoker has a key of its own; the import of stacks reads Heat's.",
        None,
    ),
    HeatOption(DEFAULT, "encrypt_parameters_and_properties", "", "Hidden values are always sealed."),
    HeatOption(DEFAULT, "enable_stack_adopt", "", "Always on; the policy `stacks:create` decides."),
    HeatOption(
        DEFAULT,
        "enable_stack_abandon",
        "",
        "Always on; the policies `stacks:abandon` and `stacks:export` decide.",
    ),
    HeatOption(
        DEFAULT, "observe_on_update", "drift.enabled", "Drift is observed between updates, too.", None
    ),
    HeatOption(DEFAULT, "stack_scheduler_hints", "", "Nova gets the hints of the template only."),
    HeatOption(DEFAULT, "plugin_dirs", "", "Plugins are packages with entry points."),
    HeatOption(DEFAULT, "loadbalancer_template", "", "Map the type to a template in `environment_dir`."),
    HeatOption(DEFAULT, "cloud_backend", "", _OF_HEAT),
    HeatOption(DEFAULT, "keystone_backend", "", _OF_HEAT),
    HeatOption(DEFAULT, "heat_stack_user_role", "", _ACCOUNTS),
    HeatOption(DEFAULT, "stack_domain_admin", "", _ACCOUNTS),
    HeatOption(DEFAULT, "stack_domain_admin_password", "", _ACCOUNTS),
    HeatOption(DEFAULT, "stack_user_domain_id", "", _ACCOUNTS),
    HeatOption(DEFAULT, "stack_user_domain_name", "", _ACCOUNTS),
    HeatOption(DEFAULT, "server_keystone_endpoint_type", "", _ACCOUNTS),
    HeatOption(
        DEFAULT,
        "instance_connection_https_validate_certificates",
        "",
        "heat-cfntools follow the address that they get.",
    ),
    HeatOption(
        DEFAULT, "instance_connection_is_secure", "", "heat-cfntools follow the address that they get."
    ),
    HeatOption("clients", "*", "clients.*"),
    HeatOption("clients_heat", "url", "clients_heat.endpoint_override", "", address),
    HeatOption("clients_keystone", "auth_uri", "", _ACCOUNTS),
    HeatOption(
        "clients_*",
        "http_log_debug",
        "",
        "Requests to services are logged by `debug`, without their secrets.",
    ),
    HeatOption("clients_*", "endpoint_type", "clients_*.endpoint_type"),
    HeatOption("clients_*", "ca_file", "clients_*.ca_file"),
    HeatOption("clients_*", "cert_file", "clients_*.cert_file"),
    HeatOption("clients_*", "key_file", "clients_*.key_file"),
    HeatOption("clients_*", "insecure", "clients_*.insecure"),
    HeatOption("trustee", "*", "trustee.*"),
    HeatOption("yaql", "limit_iterators", "yaql.limit_iterators"),
    HeatOption("yaql", "memory_quota", "yaql.memory_quota"),
    HeatOption(
        "auth_password", "*", "", "A stack in another cloud names its credential in `OS::Heat::Stack`."
    ),
    HeatOption("constraint_validation_cache", "*", "", _CACHE),
    HeatOption("resource_finder_cache", "*", "", _CACHE),
    HeatOption("service_extension_cache", "*", "", _CACHE),
    HeatOption("database", "*", "", _OWN_DATABASE),
    HeatOption(
        "ec2authtoken", "*", "", "Keystone checks signatures with the account in `[keystone_authtoken]`."
    ),
    HeatOption("noauth", "*", "", "Without Keystone: `[api] auth_strategy = none`."),
    HeatOption("paste_deploy", "*", "", "The API has no pipeline to configure."),
    HeatOption("revision", "*", "", "The version is that of the package."),
    HeatOption(
        "volumes", "backups_enabled", "", "A snapshot of a stack always makes backups of its volumes."
    ),
)
"""All of Heat's own options; the first one that matches counts."""
OF_LIBRARIES = (
    HeatOption(DEFAULT, "log_file", "DEFAULT.log_file", "Each service has files of its own.", None),
    HeatOption(DEFAULT, "log_dir", "DEFAULT.log_dir", "Each service has files of its own.", None),
    HeatOption(
        "oslo_concurrency",
        "lock_path",
        "oslo_concurrency.lock_path",
        "Each service has files of its own.",
        None,
    ),
    HeatOption("oslo_reports", "*", "oslo_reports.*", "Each service has files of its own.", None),
)
"""Options of libraries that are not copied; all others that both services have are."""


def heat_option(section: str, name: str) -> HeatOption | None:
    """Return the entry of an option; None: it is not in the tables."""
    for option in (*OPTIONS, *OF_LIBRARIES):
        if fnmatch.fnmatchcase(section, option.section) and fnmatch.fnmatchcase(name, option.name):
            return option
    return None
