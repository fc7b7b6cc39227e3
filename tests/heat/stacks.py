"""Stacks of every kind, for a Heat on the tests' cloud."""

import json
import typing
from collections.abc import Mapping, Sequence

from heat import type_stacks

Json = typing.Any
VERSION = type_stacks.VERSION
SECRET = "the-secret-of-the-tests"
CHILD = (
    VERSION
    + """
parameters: {size: {type: number, default: 1}, name: {type: string}}
resources:
  r: {type: OS::Heat::RandomString, properties: {length: 8}}
  v:
    type: OS::Heat::Value
    properties: {value: {list_join: [":", [{get_param: name}, {get_attr: [r, value]}]]}}
outputs: {val: {value: {get_attr: [v, value]}}}
"""
)
FLAT = (
    VERSION
    + """
parameters: {word: {type: string, default: hello}}
resources:
  a: {type: OS::Heat::RandomString, properties: {length: 12}}
  b:
    type: OS::Heat::Value
    properties:
      value: {str_replace: {template: "W-A", params: {W: {get_param: word}, A: {get_attr: [a, value]}}}}
  t: {type: OS::Heat::TestResource, properties: {value: {get_attr: [b, value]}}}
outputs:
  a: {value: {get_resource: a}}
  b: {value: {get_attr: [b, value]}}
  t: {value: {get_attr: [t, output]}}
"""
)
HALF = FLAT.replace("TestResource, properties: {", "TestResource, properties: {fail: true, ").replace(
    "hello", "bye"
)
"""A template whose update of `FLAT` fails at its last resource."""
CFN: Json = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Parameters": {"P": {"Type": "String", "Default": "p", "NoEcho": "true"}},
    "Resources": {
        "H": {"Type": "AWS::CloudFormation::WaitConditionHandle"},
        "V": {"Type": "OS::Heat::Value", "Properties": {"value": {"Ref": "P"}}},
    },
    "Outputs": {"U": {"Value": {"Ref": "H"}}},
}

LAUNCHED: Json = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {
        "Net": {"Type": "OS::Neutron::Net"},
        "Sub": {
            "Type": "OS::Neutron::Subnet",
            "Properties": {"network": {"Ref": "Net"}, "cidr": "10.3.0.0/24"},
        },
        "L": {
            "Type": "AWS::AutoScaling::LaunchConfiguration",
            "Properties": {"ImageId": "cirros", "InstanceType": "m1.tiny", "UserData": "hi"},
        },
        "G": {
            "Type": "AWS::AutoScaling::AutoScalingGroup",
            "Properties": {
                "AvailabilityZones": ["nova"],
                "LaunchConfigurationName": {"Ref": "L"},
                "MinSize": "1",
                "MaxSize": "3",
                "VPCZoneIdentifier": [{"Ref": "Sub"}],
            },
        },
        "P": {
            "Type": "AWS::AutoScaling::ScalingPolicy",
            "Properties": {
                "AutoScalingGroupName": {"Ref": "G"},
                "ScalingAdjustment": "1",
                "AdjustmentType": "ChangeInCapacity",
            },
        },
    },
    "Outputs": {"U": {"Value": {"Ref": "P"}}, "I": {"Value": {"Fn::GetAtt": ["G", "InstanceList"]}}},
}
IAM: Json = {
    "AWSTemplateFormatVersion": "2010-09-09",
    "Resources": {
        "Net": {"Type": "OS::Neutron::Net"},
        "Sub": {
            "Type": "OS::Neutron::Subnet",
            "Properties": {"network": {"Ref": "Net"}, "cidr": "10.4.0.0/24"},
        },
        "P": {"Type": "OS::Heat::AccessPolicy", "Properties": {"AllowedResources": ["I"]}},
        "U": {"Type": "AWS::IAM::User", "Properties": {"Policies": [{"Ref": "P"}]}},
        "K": {"Type": "AWS::IAM::AccessKey", "Properties": {"UserName": {"Ref": "U"}}},
        "I": {
            "Type": "AWS::EC2::Instance",
            "Properties": {"ImageId": "cirros", "InstanceType": "m1.tiny", "SubnetId": {"Ref": "Sub"}},
        },
    },
    "Outputs": {
        "K": {"Value": {"Ref": "K"}},
        "S": {"Value": {"Fn::GetAtt": ["K", "SecretAccessKey"]}},
        "I": {"Value": {"Fn::GetAtt": ["I", "PrivateIp"]}},
    },
}

STACKS: Mapping[str, Json] = {
    **type_stacks.STACKS,
    "iam": {"template": json.dumps(IAM)},
    "launched": {"template": json.dumps(LAUNCHED)},
    "flat": {"template": FLAT, "tags": "x,y", "timeout_mins": 17},
    "half": {"template": FLAT},
    "asleep": {"template": FLAT},
    "cfn": {"template": json.dumps(CFN)},
    "net": {
        "template": VERSION
        + """
resources:
  net: {type: OS::Neutron::Net, properties: {name: the-net}}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.1.0.0/24}}
  sg:
    type: OS::Neutron::SecurityGroup
    properties: {rules: [{protocol: tcp, port_range_min: 22, port_range_max: 22}]}
  router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: public}}}
  ri:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: sub}}
  port:
    type: OS::Neutron::Port
    properties:
      network: {get_resource: net}
      security_groups: [{get_resource: sg}]
      fixed_ips: [{subnet: {get_resource: sub}}]
  fip:
    type: OS::Neutron::FloatingIP
    depends_on: ri
    properties: {floating_network: public, port_id: {get_resource: port}}
  server:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: m1.tiny
      networks: [{port: {get_resource: port}}]
      user_data: hi
      metadata: {k: v}
  server2:
    type: OS::Nova::Server
    properties:
      image: cirros
      flavor: m1.tiny
      networks: [{network: {get_resource: net}, subnet: {get_resource: sub}}]
  vol: {type: OS::Cinder::Volume, properties: {size: 1}}
  va:
    type: OS::Cinder::VolumeAttachment
    properties: {volume_id: {get_resource: vol}, instance_uuid: {get_resource: server}}
outputs:
  ip: {value: {get_attr: [server, first_address]}}
  fip: {value: {get_attr: [fip, floating_ip_address]}}
  mac: {value: {get_attr: [port, mac_address]}}
  sid: {value: {get_resource: server}}
""",
    },
    "hidden": {
        "template": VERSION
        + """
parameters: {secret: {type: string, hidden: true}}
resources:
  v: {type: OS::Heat::Value, properties: {value: {get_param: secret}}}
  t: {type: OS::Heat::TestResource, properties: {value: {list_join: ["-", [{get_param: secret}, x]]}}}
outputs: {o: {value: {get_attr: [t, output]}}}
""",
        "parameters": {"secret": SECRET},
    },
    "nested": {
        "template": VERSION
        + """
resources:
  one: {type: My::Child, properties: {name: first}}
  two: {type: child.yaml, properties: {name: {get_attr: [one, val]}}}
outputs:
  one: {value: {get_attr: [one, val]}}
  two: {value: {get_attr: [two, val]}}
  inside: {value: {get_attr: [one, resource.r, value]}}
""",
        "files": {"child.yaml": CHILD},
        "environment": {
            "resource_registry": {"My::Child": "child.yaml"},
            "parameter_defaults": {"size": 3},
        },
    },
    "group": {
        "template": VERSION
        + """
parameters: {count: {type: number, default: 3}}
resources:
  rg:
    type: OS::Heat::ResourceGroup
    properties:
      count: {get_param: count}
      resource_def: {type: OS::Heat::RandomString, properties: {length: 5, salt: "s-%index%"}}
  chain:
    type: OS::Heat::ResourceChain
    properties:
      resources: [OS::Heat::RandomString, OS::Heat::RandomString]
      resource_properties: {length: 4}
  deep:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: child.yaml, properties: {name: "m%index%"}}}
outputs:
  refs: {value: {get_attr: [rg, refs]}}
  vals: {value: {get_attr: [rg, value]}}
  chain: {value: {get_attr: [chain, refs]}}
  deep: {value: {get_attr: [deep, val]}}
  one: {value: {get_attr: [rg, resource.1, value]}}
""",
        "files": {"child.yaml": CHILD},
    },
    "scale": {
        "template": VERSION
        + """
resources:
  asg:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 1
      max_size: 5
      desired_capacity: 2
      resource: {type: OS::Heat::RandomString, properties: {length: 6}}
  up:
    type: OS::Heat::ScalingPolicy
    properties:
      adjustment_type: change_in_capacity
      auto_scaling_group_id: {get_resource: asg}
      scaling_adjustment: 1
      cooldown: 1
outputs:
  url: {value: {get_attr: [up, alarm_url]}}
  n: {value: {get_attr: [asg, current_size]}}
  vals: {value: {get_attr: [asg, outputs_list, value]}}
""",
    },
    "wait": {
        "template": VERSION
        + """
resources:
  h: {type: OS::Heat::WaitConditionHandle}
  w: {type: OS::Heat::WaitCondition, properties: {handle: {get_resource: h}, timeout: 300}}
  h2: {type: OS::Heat::WaitConditionHandle, properties: {signal_transport: CFN_SIGNAL}}
outputs:
  data: {value: {get_attr: [w, data]}}
  curl: {value: {get_attr: [h, curl_cli]}}
  endpoint: {value: {get_attr: [h, endpoint]}}
  token: {value: {get_attr: [h, token]}}
  signed: {value: {get_attr: [h2, signal]}}
""",
    },
    "soft": {
        "template": VERSION
        + """
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.2.0.0/24}}
  cfg:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: "echo $x", inputs: [{name: x}], outputs: [{name: y}]}
  server:
    type: OS::Nova::Server
    depends_on: sub
    properties:
      image: cirros
      flavor: m1.tiny
      user_data_format: SOFTWARE_CONFIG
      software_config_transport: POLL_SERVER_CFN
      networks: [{network: {get_resource: net}}]
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_resource: cfg}
      server: {get_resource: server}
      input_values: {x: 2}
      signal_transport: CFN_SIGNAL
outputs:
  y: {value: {get_attr: [deployment, y]}}
  occ: {value: {get_attr: [server, os_collect_config]}}
""",
    },
    "configs": {
        "template": VERSION
        + """
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.5.0.0/24}}
  map:
    type: OS::Heat::StructuredConfig
    properties: {group: os-apply-config, config: {a: {get_input: x}}, inputs: [{name: x}]}
  init:
    type: OS::Heat::CloudConfig
    properties: {cloud_config: {write_files: [{path: /x, content: y}]}}
  mime: {type: OS::Heat::MultipartMime, properties: {parts: [{config: {get_resource: init}}]}}
  script:
    type: OS::Heat::SoftwareConfig
    properties: {group: script, config: "echo $x", inputs: [{name: x}]}
  server:
    type: OS::Nova::Server
    depends_on: sub
    properties:
      image: cirros
      flavor: m1.tiny
      user_data_format: SOFTWARE_CONFIG
      software_config_transport: POLL_SERVER_HEAT
      user_data: {get_resource: mime}
      networks: [{network: {get_resource: net}}]
  one:
    type: OS::Heat::StructuredDeployment
    properties:
      config: {get_resource: map}
      server: {get_resource: server}
      input_values: {x: 1}
      signal_transport: NO_SIGNAL
  many:
    type: OS::Heat::SoftwareDeploymentGroup
    properties:
      config: {get_resource: script}
      servers: {only: {get_resource: server}}
      input_values: {x: 1}
      signal_transport: NO_SIGNAL
outputs:
  init: {value: {get_attr: [init, config]}}
  mime: {value: {get_attr: [mime, config]}}
  many: {value: {get_attr: [many, deploy_stdouts]}}
""",
    },
    "failed": {
        "template": VERSION
        + """
resources:
  ok: {type: OS::Heat::RandomString}
  bad: {type: OS::Heat::TestResource, depends_on: ok, properties: {fail: true, value: x}}
  later: {type: OS::Heat::Value, properties: {value: {get_attr: [bad, output]}}}
""",
    },
    "snap": {
        "template": VERSION
        + """
resources:
  vol: {type: OS::Cinder::Volume, properties: {size: 1}}
  v: {type: OS::Heat::Value, properties: {value: one}}
""",
    },
}
"""Bodies of creations by the stacks' names."""
CHANGES: Mapping[str, Sequence[type_stacks.Change]] = {
    **type_stacks.CHANGES,
    "half": [type_stacks.Change("PUT", "", {"template": HALF}, "UPDATE_FAILED")],
}
"""By the stacks' names, changes after the creation, each when the one before has ended."""
FAILED = ("failed", "half", "half_tree")
"""Stacks whose last action has failed."""
SUSPENDED = ("asleep", "asleep_tree")
CREATED: Mapping[str, str] = {"failed": "CREATE_FAILED", "rolled": "ROLLBACK_COMPLETE"}
"""Statuses after the creations, where they are not CREATE_COMPLETE."""
