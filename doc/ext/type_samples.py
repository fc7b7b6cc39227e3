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
_GNOCCHI = {"comparison_operator": "gt", "evaluation_periods": 2, "aggregation_method": "mean"}
_CONFIGURATION = {
    "type": "AWS::AutoScaling::LaunchConfiguration",
    "properties": {"ImageId": "my-image", "InstanceType": "my-flavor"},
}
BY_TYPE: Mapping[str, Mapping[str, Json]] = {
    "AWS::AutoScaling::AutoScalingGroup": {
        "LaunchConfigurationName": {"get_resource": "configuration"},
        "MaxSize": 3,
    },
    "AWS::AutoScaling::LaunchConfiguration": _CONFIGURATION["properties"],
    "AWS::EC2::EIPAssociation": {"EIP": "192.0.2.10", "InstanceId": "my-server"},
    "AWS::EC2::Volume": {"Size": 1},
    "AWS::EC2::VolumeAttachment": {"Device": "/dev/vdb"},
    "OS::Aodh::CompositeAlarm": {
        "composite_rule": {
            "operator": "or",
            "rules": [
                {
                    "type": "gnocchi_resources_threshold",
                    "metric": metric,
                    "resource_id": "my-server",
                    "resource_type": "instance",
                    "threshold": threshold,
                    **_GNOCCHI,
                }
                for metric, threshold in (("cpu_util", 80), ("memory.usage", 900))
            ],
        }
    },
    "OS::Barbican::Order": {"algorithm": "aes", "bit_length": 256, "mode": "cbc"},
    "OS::Blazar::Lease": {
        "name": "weekend",
        "start_date": "2030-01-05 08:00",
        "end_date": "2030-01-06 20:00",
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 2}],
    },
    "OS::Cinder::Quota": {"volumes": 20, "gigabytes": 500},
    "OS::Designate::Zone": {"name": "example.org.", "email": "hostmaster@example.org"},
    "OS::Glance::WebImage": {
        "disk_format": "qcow2",
        "container_format": "bare",
        "location": "https://example.org/image.qcow2",
    },
    "OS::Heat::AccessPolicy": {"AllowedResources": ["server"]},
    "OS::Heat::InstanceGroup": {"LaunchConfigurationName": {"get_resource": "configuration"}, "Size": 2},
    "OS::Heat::ResourceChain": {
        "resources": ["OS::Heat::RandomString", "OS::Heat::RandomString"],
        "resource_properties": {"length": 12},
    },
    "OS::Heat::Stack": {"template": {"get_file": "first_stack.yaml"}},
    "OS::Manila::Share": {
        "share_protocol": "NFS",
        "size": 10,
        "access_rules": [{"access_type": "ip", "access_to": "192.0.2.0/24", "access_level": "rw"}],
    },
    "OS::Manila::ShareNetwork": {"neutron_subnet": "my-subnet"},
    "OS::Mistral::CronTrigger": {"pattern": "0 23 * * *", "workflow": {"name": "my-workflow"}},
    "OS::Mistral::ExternalResource": {
        "actions": {"CREATE": {"workflow": "create-thing"}, "DELETE": {"workflow": "delete-thing"}},
        "input": {"size": 3},
    },
    "OS::Mistral::Workflow": {
        "type": "direct",
        "input": {"text": "hello"},
        "tasks": [{"name": "say", "action": "std.echo", "input": {"output": "<% $.text %>"}}],
    },
    "OS::Neutron::Quota": {"network": 20, "port": 200},
    "OS::Nova::Quota": {"instances": 20, "cores": 40},
    "OS::Octavia::Quota": {"loadbalancer": 5, "pool": 10},
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
    "OS::Zaqar::Subscription": {"subscriber": "https://example.org/messages"},
}
"""Properties that a type's own checks want, or that say more than the schema, by type."""
BY_SIDE: Mapping[str, Mapping[str, Json]] = {
    "AWS::AutoScaling::AutoScalingGroup": {"configuration": _CONFIGURATION},
    "OS::Heat::AccessPolicy": {
        "server": {"type": "OS::Nova::Server", "properties": {"image": "my-image", "flavor": "my-flavor"}}
    },
    "OS::Heat::InstanceGroup": {"configuration": _CONFIGURATION},
}
"""Other resources that an example refers to, by type."""
