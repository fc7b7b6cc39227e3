"""The configuration of each service: what it must know, and what makes it quick or small for tests."""

import base64
import os
import pathlib
import pwd
import typing
import uuid
from collections.abc import Mapping, Sequence

from harness.cloud.layout import COMPUTE_HOST, HOME, PASSWORD, REGION, Ini, Layout, Section
from harness.ports import HOST

UNLIMITED = -1
NODE = uuid.uuid5(uuid.NAMESPACE_DNS, "cloud")
"""The identity of the one hypervisor; its driver computes the same."""


def keystone(layout: Layout) -> Ini:
    """Tokens that live for a day, and passwords that are hashed quickly."""
    state = layout.state("keystone")
    return {
        "DEFAULT": {"log_file": layout.log("keystone"), "use_stderr": False},
        "database": {"connection": layout.database_of("keystone")},
        "fernet_tokens": {"key_repository": state / "fernet"},
        "fernet_receipts": {"key_repository": state / "fernet"},
        "credential": {"key_repository": state / "credential"},
        "identity": {"password_hash_rounds": 4},
        "cache": {"enabled": True, "backend": "dogpile.cache.memory"},
        "token": {"expiration": 86400},
    }


def glance(layout: Layout) -> Ini:
    """Images in files; their data may come from servers of the tests' own."""
    state = layout.state("glance")
    return {
        "DEFAULT": {**_default(layout, "glance"), "enabled_backends": "files:file"},
        "glance_store": {"default_backend": "files"},
        "files": {"filesystem_store_datadir": state / "images"},
        "os_glance_staging_store": {"filesystem_store_datadir": state / "staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": state / "tasks"},
        "import_filtering_opts": {"allowed_hosts": "[127.0.0.1]", "allowed_ports": "[]"},
        "paste_deploy": {"flavor": "keystone", "config_file": HOME / "etc/glance/glance-api-paste.ini"},
        "database": {"connection": layout.database_of("glance")},
        **_usual(layout, "glance"),
    }


def placement(layout: Layout) -> Ini:
    """Nothing out of the ordinary."""
    return {
        "DEFAULT": _default(layout, "placement"),
        "placement_database": {"connection": layout.database_of("placement")},
        **_usual(layout, "placement"),
    }


def neutron(layout: Layout) -> Ini:
    """Ports that are up at once on every host, with a driver of our own.

    Open vSwitch is configured only because trunks and QoS want a driver that supports them.  Nova does
    not wait for ports, so it is not notified that they are up; of their addresses it is.
    """
    kinds = ["network", "subnet", "port", "router", "floatingip", "security_group", "security_group_rule"]
    return {
        "DEFAULT": {
            **_default(layout, "neutron"),
            "core_plugin": "ml2",
            "service_plugins": "router,segments,trunk,qos,metering,port_forwarding",
            "api_paste_config": HOME / "etc/neutron/api-paste.ini",
            "notify_nova_on_port_status_changes": False,
            "notify_nova_on_port_data_changes": True,
            "dns_domain": "cloud.test.",
            "max_allowed_address_pair": 100,
        },
        "database": {"connection": layout.database_of("neutron")},
        "ml2": {
            "mechanism_drivers": "everywhere,openvswitch",
            "type_drivers": "flat,vlan,vxlan,local",
            "tenant_network_types": "vxlan",
            "extension_drivers": "port_security,qos,dns",
        },
        "ml2_type_flat": {"flat_networks": "*"},
        "ml2_type_vlan": {"network_vlan_ranges": "physnet1:100:999"},
        "ml2_type_vxlan": {"vni_ranges": "1:20000"},
        "quotas": {"default_quota": UNLIMITED} | {f"quota_{kind}": UNLIMITED for kind in kinds},
        "nova": _account(layout),
        "placement": _account(layout),
        **_usual(layout, "neutron"),
    }


def nova(layout: Layout) -> Ini:
    """One host with a hypervisor that makes nothing."""
    kinds = ["instances", "cores", "ram", "key_pairs", "server_groups", "server_group_members"]
    return {
        "DEFAULT": {
            **_default(layout, "nova"),
            "my_ip": "127.0.0.1",
            "allow_resize_to_same_host": True,
            "compute_driver": "stoker_cloud_compute.Cloud",
            "osapi_compute_workers": 1,
            "enabled_apis": "osapi_compute",
            "vif_plugging_is_fatal": False,
            "vif_plugging_timeout": 0,
            "running_deleted_instance_poll_interval": 0,
        },
        "database": {"connection": layout.database_of("nova_cell1")},
        "api_database": {"connection": layout.database_of("nova_api")},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": -1},
        "filter_scheduler": {"track_instance_changes": False},
        "vnc": {"enabled": False},
        "cinder": {"os_region_name": REGION, "catalog_info": "block-storage:cinder:publicURL"},
        "glance": {"region_name": REGION, "valid_interfaces": "public"},
        "quota": dict.fromkeys(kinds, UNLIMITED),
        "placement": {**_account(layout), "valid_interfaces": "public"},
        "neutron": {**_account(layout), "valid_interfaces": "public"},
        **_usual(layout, "nova"),
    }


def cinder(layout: Layout) -> Ini:
    """Volumes and backups without data."""
    kinds = ["volumes", "snapshots", "gigabytes", "backups", "backup_gigabytes"]
    return {
        "DEFAULT": {
            **_default(layout, "cinder"),
            "api_paste_config": HOME / "etc/cinder/api-paste.ini",
            "resource_query_filters_file": HOME / "etc/cinder/resource_filters.json",
            "enabled_backends": "nothing",
            "backup_driver": "stoker_cloud_backups.Nothing",
            "backup_manager": "stoker_cloud_backups.Backups",
            "default_volume_type": "standard",
            "glance_catalog_info": "image:glance:publicURL",
            "osapi_volume_workers": 1,
            "per_volume_size_limit": UNLIMITED,
            **{f"quota_{kind}": UNLIMITED for kind in kinds},
        },
        "nothing": {"volume_driver": "stoker_cloud_volumes.Nothing", "volume_backend_name": "nothing"},
        "database": {"connection": layout.database_of("cinder")},
        "nova": _account(layout),
        **_usual(layout, "cinder"),
    }


def octavia(layout: Layout) -> Ini:
    """Balancers that are rows: nothing is started, configured or watched for them."""
    authority = octavia_authority(layout)
    drivers = {"amphora": "nothing is made", "octavia": "the same"}
    listens = {"bind_ip": HOST, "bind_port": layout.ports["octavia"] + 1}  # No part of it listens there.
    return {
        "DEFAULT": _default(layout, "octavia"),
        "api_settings": {
            "auth_strategy": "keystone",
            "enabled_provider_drivers": ",".join(f"{name}:{text}" for name, text in drivers.items()),
            "default_provider_driver": "amphora",
            "api_base_uri": layout.url("octavia"),
            "allow_ping_health_monitors": True,
        },
        "database": {"connection": layout.database_of("octavia")},
        "health_manager": {**listens, "heartbeat_key": PASSWORD},
        "certificates": {
            "cert_manager": "noop_cert_manager",
            "cert_generator": "local_cert_generator",
            "ca_certificate": authority,
            "ca_private_key": authority,
            "server_certs_key_passphrase": "insecure-key-do-not-use-this-key",
        },
        "controller_worker": {
            "workers": 1,
            **{
                f"{part}_driver": f"{part}_noop_driver" for part in ("amphora", "compute", "network", "image")
            },
            "amp_flavor_id": 1,
            "amp_image_tag": "amphora",
            "amp_boot_network_list": uuid.UUID(int=1),
            "amp_active_wait_sec": 1,
            "client_ca": authority,
            "loadbalancer_topology": "SINGLE",
        },
        "task_flow": {"jobboard_enabled": False},
        "oslo_policy": {"enforce_scope": False, "enforce_new_defaults": False},
        "service_auth": _account(layout),
        **{name: _account(layout) for name in ("neutron", "glance", "nova")},
        **_usual(layout, "octavia"),
    }


def octavia_authority(layout: Layout) -> pathlib.Path:
    """The file with the certificate and the key of Octavia's own authority."""
    return layout.config("octavia") / "authority.pem"


def barbican(layout: Layout) -> Ini:
    """Secrets in the database, encrypted with the key below; no orders, for these need a worker."""
    return {
        "DEFAULT": {**_default(layout, "barbican"), "host_href": "", "db_auto_create": True},
        "database": {"connection": layout.database_of("barbican")},
        "secretstore": {"enabled_secretstore_plugins": "store_crypto"},
        "crypto": {"enabled_crypto_plugins": "simple_crypto"},
        "simple_crypto_plugin": {"kek": base64.b64encode(b"abcdefghijklmnopqrstuvwxyz123456").decode()},
        "queue": {"enable": False},
        **_usual(layout, "barbican"),
    }


def gnocchi(layout: Layout) -> Ini:
    """Measures in files, which are worked on every second."""
    state = layout.state("gnocchi")
    return {
        "DEFAULT": {"log_file": layout.log("gnocchi"), "coordination_url": f"file://{state}/members"},
        "indexer": {"url": layout.database_of("gnocchi")},
        "storage": {"driver": "file", "file_basepath": state / "measures"},
        "metricd": {"workers": 1, "metric_processing_delay": 1, "metric_reporting_delay": -1},
        "api": {"auth_mode": "keystone"},
        "keystone_authtoken": _usual(layout, "gnocchi")["keystone_authtoken"],
    }


def aodh(layout: Layout) -> Ini:
    """Alarms that are evaluated every second; measures may be some seconds late."""
    return {
        "DEFAULT": {**_default(layout, "aodh"), "additional_ingestion_lag": 10},
        "database": {"connection": layout.database_of("aodh")},
        "evaluator": {"evaluation_interval": 1},
        "service_credentials": _account(layout),
        **_usual(layout, "aodh"),
    }


def designate(layout: Layout) -> Ini:
    """Zones in the database; `designate_pool` says who answers for them."""
    name_server = f"{HOST}:{layout.ports['designate-mdns']}"
    kinds = ("zones", "zone_recordsets", "zone_records")
    return {
        "DEFAULT": {
            **_default(layout, "designate"),
            **{f"quota_{kind}": UNLIMITED for kind in kinds},
        },
        "storage:sqlalchemy": {"connection": layout.database_of("designate")},
        "service:api": {"auth_strategy": "keystone", "api_base_uri": layout.url("designate")},
        "service:central": {"workers": 1},
        "service:producer": {"workers": 1},
        "service:mdns": {"workers": 1, "listen": name_server},
        # A deletion ends when no name server answers for the zone.  Designate's own one always does: the
        # worker stops after these retries, and Designate deletes the zone then, too.
        "service:worker": {"workers": 1, "poll_delay": 0, "poll_retry_interval": 1, "poll_max_retries": 3},
        "producer_task:increment_serial": {"interval": 1},
        **_usual(layout, "designate"),
    }


def designate_pool(layout: Layout) -> Sequence[Mapping[str, object]]:
    """The pool of all zones: nothing is made for them, and Designate's own name server answers."""
    address = {"host": HOST, "port": layout.ports["designate-mdns"]}
    return [
        {
            "id": "794ccc2c-d751-44fe-b57f-8894c9f5c842",  # The default one's.
            "name": "default",
            "attributes": {},
            "ns_records": [{"hostname": "ns.cloud.test.", "priority": 1}],
            "nameservers": [address],
            "targets": [{"type": "fake", "masters": [address], "options": address}],
        }
    ]


def manila(layout: Layout) -> Ini:
    """Shares of the driver that Manila brings for tests: nothing is made for them.

    One backend wants a share network for each share, and its ports in Neutron; the other one takes none.
    """
    kinds = ("shares", "snapshots", "gigabytes", "snapshot_gigabytes", "share_networks")
    backend: dict[str, typing.Any] = {
        "share_driver": "manila.tests.share.drivers.dummy.DummyDriver",
        "dummy_driver_default_driver_method_delay": 0,
        "dummy_driver_driver_methods_delays": "create_share:0.2,update_access:0.2",
    }
    return {
        "DEFAULT": {
            **_default(layout, "manila"),
            "api_paste_config": HOME / "etc/manila/api-paste.ini",
            "enabled_share_backends": "plain,served",
            "enabled_share_protocols": "NFS,CIFS",
        },
        "plain": {**backend, "share_backend_name": "plain", "driver_handles_share_servers": False},
        "served": {
            **backend,
            "share_backend_name": "served",
            "driver_handles_share_servers": True,
            "admin_network_config_group": "administration",
        },
        "administration": {
            "network_api_class": "manila.network.standalone_network_plugin.StandaloneNetworkPlugin",
            "standalone_network_plugin_gateway": "10.254.0.1",
            "standalone_network_plugin_mask": 16,
        },
        "quota": dict.fromkeys(kinds, UNLIMITED),
        "database": {"connection": layout.database_of("manila")},
        "coordination": {"backend_url": f"file://{layout.state('manila')}/members"},
        "neutron": _account(layout),
        **_usual(layout, "manila"),
    }


def mistral(layout: Layout) -> Ini:
    """One daemon, which decides what is done next, and does it, too."""
    return {
        "DEFAULT": {**_default(layout, "mistral"), "server": "engine"},
        "database": {"connection": layout.database_of("mistral")},
        "executor": {"type": "local"},
        "notifier": {"type": "local"},
        # Triggers are rows: the tests do not wait for a minute to be over.
        "cron_trigger": {"enabled": False},
        **_usual(layout, "mistral"),
    }


def swift(layout: Layout) -> Ini:
    """The proxy; installed/swift_server.py writes the configuration of what is behind it."""
    filters = ("catch_errors", "cache", "listing_formats", "tempurl", "authtoken", "keystoneauth")
    versions = ("slo", "dlo", "versioned_writes")
    account = {name: value for name, value in _account(layout).items() if not name.endswith("domain_id")}
    domains = {"user_domain_name": "Default", "project_domain_name": "Default"}
    options: dict[str, Section] = {
        "cache": {"use": "egg:swift#memcache", "memcache_servers": f"{HOST}:1"},  # Nobody listens there.
        "tempurl": {"use": "egg:swift#tempurl", "methods": "GET HEAD PUT POST DELETE"},
        "authtoken": {
            "paste.filter_factory": "keystonemiddleware.auth_token:filter_factory",
            "delay_auth_decision": True,
            "www_authenticate_uri": layout.auth_url,
            **account,
            **domains,
        },
        "keystoneauth": {"use": "egg:swift#keystoneauth", "operator_roles": "admin, member"},
        "versioned_writes": {"use": "egg:swift#versioned_writes", "allow_versioned_writes": True},
    }
    return {
        "DEFAULT": {
            "bind_ip": HOST,
            "bind_port": layout.ports["swift"],
            "user": pwd.getpwuid(os.geteuid()).pw_name,
            "swift_dir": layout.config("swift"),
            "workers": 0,
        },
        "pipeline:main": {"pipeline": " ".join((*filters, *versions, "proxy-server"))},
        "app:proxy-server": {"use": "egg:swift#proxy", "account_autocreate": True},
        **{
            f"filter:{name}": options.get(name) or {"use": f"egg:swift#{name}"}
            for name in (*filters, *versions)
        },
    }


def _default(layout: Layout, name: str) -> Section:
    return {
        "log_file": layout.log(name),
        "use_stderr": False,
        "transport_url": layout.broker,
        "state_path": layout.state(name),
        "host": COMPUTE_HOST,
    }


def _account(layout: Layout) -> Section:
    """How a service speaks to the others."""
    return {
        "auth_type": "password",
        "auth_url": layout.auth_url,
        "username": "service",
        "password": PASSWORD,
        "project_name": "service",
        "user_domain_id": "default",
        "project_domain_id": "default",
        "region_name": REGION,
    }


def _usual(layout: Layout, name: str) -> Ini:
    """The sections that every service has, except for Keystone."""
    tokens = {
        "www_authenticate_uri": layout.auth_url,
        "service_token_roles_required": True,
        "service_token_roles": "service",
    }
    return {
        "keystone_authtoken": {**_account(layout), **tokens},
        "service_user": {**_account(layout), "send_service_user_token": True},
        "oslo_concurrency": {"lock_path": layout.state(name)},
        "oslo_messaging_rabbit": {"heartbeat_in_pthread": False},
    }
