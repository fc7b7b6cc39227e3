"""Values for the examples of resource types, where a schema does not say enough."""

import typing
from collections.abc import Mapping

Json = typing.Any
BY_CHECK: Mapping[str, Json] = {
    "cron_expression": "0 23 * * *",
    "dns_domain": "example.org.",
    "dns_name": "www.example.org.",
    "expiration": "2030-01-01T00:00:00",
    "ip_addr": "192.0.2.10",
    "ip_or_cidr": "192.0.2.0/24",
    "iso_8601": "P1D",
    "json_string": '{"key": "value"}',
    "mac_addr": "fa:16:3e:00:00:01",
    "net_cidr": "192.0.2.0/24",
    "rel_dns_name": "www",
    "timezone": "Etc/UTC",
}
"""Values that satisfy the checks which need no cloud."""
BY_TYPE: Mapping[str, Mapping[str, Json]] = {
    "AWS::CloudFormation::Stack": {"TemplateURL": "https://example.org/network.yaml"},
    "OS::Barbican::Order": {"algorithm": "aes", "bit_length": 256, "mode": "cbc"},
    "OS::Blazar::Lease": {
        "name": "weekend",
        "start_date": "2030-01-05 08:00",
        "end_date": "2030-01-06 20:00",
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 2}],
    },
    "OS::Trove::Instance": {
        "flavor": "my-flavor",
        "size": 5,
        "datastore_type": "mysql",
        "datastore_version": "8.0",
        "networks": [{"network": "my-network"}],
        "databases": [{"name": "shop"}],
        "users": [{"name": "ann", "password": "secret", "databases": ["shop"]}],
    },
    "OS::Zun::Container": {"image": "nginx", "networks": [{"network": "my-network"}]},
}
"""Properties that a type's own checks want, or that say more than the schema, by type."""
