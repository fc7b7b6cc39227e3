"""Stacks of types and states that few stacks have, for a Heat on the tests' cloud."""

import json
import typing
from collections.abc import Mapping, Sequence

Json = typing.Any
EXTERNAL = "EXTERNAL"
"""Stands for the id of the external network."""


class Change(typing.NamedTuple):
    """A request that changes a stack.

    :ivar path: its path below that of the stack.
    :ivar status: the status of the stack once the change has ended.
    """

    method: str
    path: str
    body: Json
    status: str


VERSION = "heat_template_version: '2021-04-16'\n"
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f tests"
NETWORK = """
resources:
  net: {type: OS::Neutron::Net}
  sub: {type: OS::Neutron::Subnet, properties: {network: {get_resource: net}, cidr: 10.20.0.0/24}}
"""
VPC = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  Vpc: {Type: AWS::EC2::VPC, Properties: {CidrBlock: 10.0.0.0/16}}
  Gateway: {Type: AWS::EC2::InternetGateway}
  Outer: {Type: AWS::EC2::Subnet, Properties: {VpcId: {Ref: Vpc}, CidrBlock: 10.0.2.0/24}}
  Table: {Type: AWS::EC2::RouteTable, Properties: {VpcId: {Ref: Vpc}}}
  Behind:
    Type: AWS::EC2::SubnetRouteTableAssociation
    Properties: {RouteTableId: {Ref: Table}, SubnetId: {Ref: Outer}}
  Group:
    Type: AWS::EC2::SecurityGroup
    Properties:
      GroupDescription: Web servers.
      VpcId: {Ref: Vpc}
      SecurityGroupIngress: [{IpProtocol: tcp, FromPort: "80", ToPort: "80", CidrIp: 0.0.0.0/0}]
  Interface:
    Type: AWS::EC2::NetworkInterface
    DependsOn: Behind
    Properties: {SubnetId: {Ref: Outer}, PrivateIpAddress: 10.0.2.77, GroupSet: [{Ref: Group}]}
  Server:
    Type: AWS::EC2::Instance
    Properties: {ImageId: cirros, InstanceType: m1.tiny, NetworkInterfaces: [{Ref: Interface}]}
  Address: {Type: AWS::EC2::EIP}
Outputs:
  Private: {Value: {"Fn::GetAtt": [Interface, PrivateIpAddress]}}
"""
WORDS = (
    VERSION
    + """
parameters: {word: {type: string, default: one}}
resources:
  first: {type: OS::Heat::TestResource, properties: {value: {get_param: word}}}
  second:
    type: OS::Heat::TestResource
    properties: {value: {get_attr: [first, output]}, update_replace_value: {get_param: word}}
outputs: {o: {value: {get_attr: [second, output]}}}
"""
)
FAILING_WORDS = WORDS.replace(
    "properties: {value: {get_attr", "properties: {fail: true, value: {get_attr"
).replace("one", "two")
"""A template whose update of `WORDS` fails at its last resource."""
LEAF = (
    VERSION
    + """
parameters: {word: {type: string, hidden: true}, fail: {type: boolean, default: false}}
resources:
  t: {type: OS::Heat::TestResource, properties: {value: {get_param: word}, fail: {get_param: fail}}}
outputs: {o: {value: {get_attr: [t, output]}}}
"""
)
BRANCH = (
    VERSION
    + """
parameters: {word: {type: string}, fail: {type: boolean, default: false}}
resources:
  leaf: {type: leaf.yaml, properties: {word: {get_param: word}, fail: {get_param: fail}}}
outputs: {o: {value: {get_attr: [leaf, o]}}}
"""
)
TREE = (
    VERSION
    + """
parameters: {word: {type: string, hidden: true}, fail: {type: boolean, default: false}}
resources:
  branch: {type: branch.yaml, properties: {word: {get_param: word}, fail: {get_param: fail}}}
  group:
    type: OS::Heat::ResourceGroup
    properties: {count: 2, resource_def: {type: leaf.yaml, properties: {word: {get_param: word}}}}
outputs:
  o: {value: {get_attr: [branch, o]}}
  all: {value: {get_attr: [group, o]}}
"""
)
FILES = {"leaf.yaml": LEAF, "branch.yaml": BRANCH}


def tree(**parameters: Json) -> Json:
    """The body of the creation of a tree of three levels."""
    return {"template": TREE, "files": FILES, "parameters": {"word": "of-a-tree", **parameters}}


STACKS: Mapping[str, Json] = {
    "keys": {
        "template": VERSION
        + NETWORK
        + """
  key: {type: OS::Nova::KeyPair, properties: {name: heat-key, public_key: PUBLIC_KEY}}
  apart: {type: OS::Nova::ServerGroup, properties: {policies: [anti-affinity]}}
  server:
    type: OS::Nova::Server
    depends_on: sub
    properties:
      image: cirros
      flavor: m1.tiny
      key_name: {get_resource: key}
      scheduler_hints: {group: {get_resource: apart}}
      networks: [{network: {get_resource: net}}]
      tags: [a, b]
outputs:
  public: {value: {get_attr: [key, public_key]}}
  networks: {value: {get_attr: [server, networks]}}
""".replace("PUBLIC_KEY", PUBLIC_KEY),
    },
    "paths": {
        "template": VERSION
        + """
resources:
  scope: {type: OS::Neutron::AddressScope, properties: {ip_version: 4}}
  pool:
    type: OS::Neutron::SubnetPool
    properties: {prefixes: [10.64.0.0/16], address_scope: {get_resource: scope}, default_prefixlen: 24}
  net: {type: OS::Neutron::Net, properties: {tags: [x]}}
  sub:
    type: OS::Neutron::Subnet
    properties: {network: {get_resource: net}, subnetpool: {get_resource: pool}}
  group: {type: OS::Neutron::SecurityGroup}
  rule:
    type: OS::Neutron::SecurityGroupRule
    properties: {security_group: {get_resource: group}, protocol: tcp, port_range_min: 80, port_range_max: 80}
  router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: public}}}
  interface:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: sub}}
  routes:
    type: OS::Neutron::ExtraRouteSet
    depends_on: interface
    properties:
      router: {get_resource: router}
      routes:
        - destination: 10.99.0.0/24
          nexthop: {get_attr: [parent, fixed_ips, 0, ip_address]}
  parent: {type: OS::Neutron::Port, depends_on: sub, properties: {network: {get_resource: net}}}
  child: {type: OS::Neutron::Port, depends_on: sub, properties: {network: {get_resource: net}}}
  trunk:
    type: OS::Neutron::Trunk
    properties:
      port: {get_resource: parent}
      sub_ports: [{port: {get_resource: child}, segmentation_type: vlan, segmentation_id: 7}]
  door: {type: OS::Neutron::Port, depends_on: sub, properties: {network: {get_resource: net}}}
  ip: {type: OS::Neutron::FloatingIP, properties: {floating_network: public}}
  association:
    type: OS::Neutron::FloatingIPAssociation
    depends_on: interface
    properties: {floatingip_id: {get_resource: ip}, port_id: {get_resource: door}}
outputs:
  cidr: {value: {get_attr: [sub, cidr]}}
""",
    },
    "vpc": {"template": VPC},
    "disk": {
        "template": json.dumps(
            {
                "AWSTemplateFormatVersion": "2010-09-09",
                "Resources": {
                    "Disk": {
                        "Type": "AWS::EC2::Volume",
                        "Properties": {"AvailabilityZone": "nova", "Size": "1"},
                    },
                    "Net": {"Type": "OS::Neutron::Net"},
                    "Sub": {
                        "Type": "OS::Neutron::Subnet",
                        "Properties": {"network": {"Ref": "Net"}, "cidr": "10.21.0.0/24"},
                    },
                    "Server": {
                        "Type": "OS::Nova::Server",
                        "DependsOn": "Sub",
                        "Properties": {
                            "image": "cirros",
                            "flavor": "m1.tiny",
                            "networks": [{"network": {"Ref": "Net"}}],
                        },
                    },
                    "Attached": {
                        "Type": "AWS::EC2::VolumeAttachment",
                        "Properties": {
                            "Device": "/dev/vdc",
                            "InstanceId": {"Ref": "Server"},
                            "VolumeId": {"Ref": "Disk"},
                        },
                    },
                },
                "Outputs": {"D": {"Value": {"Ref": "Disk"}}},
            }
        )
    },
    "tools": {
        "template": VERSION
        + """
resources:
  server: {type: OS::Heat::DeployedServer}
  component:
    type: OS::Heat::SoftwareComponent
    properties:
      configs: [{actions: [CREATE], tool: script, config: "echo $x"}]
      inputs: [{name: x}]
  map: {type: OS::Heat::StructuredConfig, properties: {group: apply, config: {a: 1}}}
  one:
    type: OS::Heat::SoftwareDeployment
    properties:
      config: {get_resource: component}
      server: {get_resource: server}
      input_values: {x: 1}
      signal_transport: NO_SIGNAL
  many:
    type: OS::Heat::StructuredDeploymentGroup
    properties:
      config: {get_resource: map}
      servers: {only: {get_resource: server}}
      signal_transport: NO_SIGNAL
  delay: {type: OS::Heat::Delay, properties: {min_wait: 0}}
  nothing: {type: OS::Heat::None, properties: {any: 1}}
outputs: {names: {value: {get_attr: [many, deploy_stdouts]}}}
""",
    },
    "secrets": {
        "template": VERSION
        + """
resources:
  secret:
    type: OS::Barbican::Secret
    properties: {name: login, payload: of-barbican, payload_content_type: text/plain}
  container:
    type: OS::Barbican::GenericContainer
    properties: {name: box, secrets: [{name: login, ref: {get_resource: secret}}]}
outputs:
  status: {value: {get_attr: [secret, status]}}
  secrets: {value: {get_attr: [container, secret_refs]}}
""",
    },
    "objects": {
        "template": VERSION
        + """
resources:
  box: {type: OS::Swift::Container, properties: {X-Container-Meta: {a: b}}}
  bucket: {type: AWS::S3::Bucket}
outputs:
  root: {value: {get_attr: [box, RootURL]}}
  domain: {value: {get_attr: [bucket, DomainName]}}
""",
    },
    "balanced": {
        "template": VERSION
        + NETWORK
        + """
  balancer: {type: OS::Octavia::LoadBalancer, properties: {vip_subnet: {get_resource: sub}}}
  listener:
    type: OS::Octavia::Listener
    properties: {loadbalancer: {get_resource: balancer}, protocol: HTTP, protocol_port: 80}
  pool:
    type: OS::Octavia::Pool
    properties: {listener: {get_resource: listener}, protocol: HTTP, lb_algorithm: ROUND_ROBIN}
  member:
    type: OS::Octavia::PoolMember
    properties: {pool: {get_resource: pool}, address: 10.20.0.9, protocol_port: 80}
  monitor:
    type: OS::Octavia::HealthMonitor
    properties: {pool: {get_resource: pool}, type: HTTP, delay: 5, timeout: 3, max_retries: 3}
  policy:
    type: OS::Octavia::L7Policy
    properties: {listener: {get_resource: listener}, action: REJECT}
  rule:
    type: OS::Octavia::L7Rule
    properties: {l7policy: {get_resource: policy}, type: PATH, compare_type: STARTS_WITH, value: /v1}
outputs: {address: {value: {get_attr: [balancer, vip_address]}}}
""",
    },
    "words": {
        "template": VERSION
        + """
parameters:
  text: {type: string, default: "naïve ☂", constraints: [{length: {max: 20}}]}
  list: {type: comma_delimited_list, default: "a,b"}
  map: {type: json, default: {a: [1, {b: null}]}}
  number: {type: number, default: 1.5}
  flag: {type: boolean, default: "on"}
  absent: {type: string, default: ""}
parameter_groups: [{label: all, parameters: [text, list]}]
conditions:
  is_on: {get_param: flag}
  is_off: {not: is_on}
resources:
  lit: {type: OS::Heat::Value, condition: is_on, properties: {value: {get_param: map}}}
  dark: {type: OS::Heat::Value, condition: is_off, properties: {value: x}}
  count:
    type: OS::Heat::Value
    depends_on: lit
    deletion_policy: retain
    metadata: {note: {get_param: text}}
    properties: {type: number, value: {get_param: number}}
  items:
    type: OS::Heat::Value
    properties: {type: comma_delimited_list, value: {list_concat: [{get_param: list}, ["c"]]}}
  outside: {type: OS::Neutron::Net, external_id: EXTERNAL}
outputs:
  map: {value: {get_attr: [lit, value, a, 1]}}
  list: {value: {get_attr: [items, value]}}
  either: {value: {if: [is_on, {get_param: text}, {get_attr: [dark, value]}]}}
  absent: {condition: is_off, value: x}
""",
        "tags": "ü",
    },
    "first": {
        "template": """
heat_template_version: 2013-05-23
description: Of the first version.
resources:
  r: {type: "OS::Heat::RandomString", properties: {length: 7, sequence: digits}}
  v: {type: "OS::Heat::TestResource", properties: {value: {get_attr: [r, value]}}}
outputs:
  o: {value: {str_replace: {template: x$v, params: {$v: {get_attr: [r, value]}}}}}
"""
    },
    "tree": tree(),
    "asleep_tree": tree(),
    "half_tree": tree(),
    "resumed": {"template": WORDS},
    "checked": {"template": WORDS},
    "replaced": {"template": WORDS},
    "undone": {"template": WORDS},
    "rolled": {"template": FAILING_WORDS, "disable_rollback": False},
    "grown": {
        "template": VERSION
        + """
parameters: {size: {type: number, default: 1}, text: {type: string, default: a}}
resources:
  asg:
    type: OS::Heat::AutoScalingGroup
    properties:
      min_size: 0
      max_size: 5
      desired_capacity: {get_param: size}
      rolling_updates: {max_batch_size: 2, min_in_service: 1}
      resource: {type: leaf.yaml, properties: {word: {get_param: text}}}
  rg:
    type: OS::Heat::ResourceGroup
    update_policy: {rolling_update: {max_batch_size: 1}}
    properties:
      count: {get_param: size}
      removal_policies: [{resource_list: ["0"]}]
      resource_def: {type: OS::Heat::TestResource, properties: {value: {get_param: text}}}
outputs:
  size: {value: {get_attr: [asg, current_size]}}
  all: {value: {get_attr: [rg, output]}}
""",
        "files": FILES,
    },
    "image": {
        "template": VERSION
        + """
resources:
  server:
    type: OS::Nova::Server
    properties: {image: cirros, flavor: m1.tiny, networks: [{allocate_network: none}]}
""",
    },
    "booted": {
        "template": VERSION
        + """
resources:
  disk: {type: OS::Cinder::Volume, properties: {size: 1, image: cirros, metadata: {a: b}}}
  server:
    type: OS::Nova::Server
    properties:
      flavor: m1.tiny
      block_device_mapping_v2: [{volume_id: {get_resource: disk}, boot_index: 0}]
      networks: [{allocate_network: none}]
outputs: {size: {value: {get_attr: [disk, size]}}}
""",
    },
    "forwarded": {
        "template": VERSION
        + NETWORK
        + """
  router: {type: OS::Neutron::Router, properties: {external_gateway_info: {network: public}}}
  interface:
    type: OS::Neutron::RouterInterface
    properties: {router: {get_resource: router}, subnet: {get_resource: sub}}
  door:
    type: OS::Neutron::Port
    properties:
      network: {get_resource: net}
      fixed_ips: [{subnet: {get_resource: sub}, ip_address: 10.20.0.8}]
  ip: {type: OS::Neutron::FloatingIP, properties: {floating_network: public}}
  forward:
    type: OS::Neutron::FloatingIPPortForward
    depends_on: interface
    properties:
      floating_ip: {get_resource: ip}
      internal_port: {get_resource: door}
      internal_ip_address: 10.20.0.8
      internal_port_number: 22
      external_port: 2222
      protocol: tcp
""",
    },
    "agents": {
        "template": VERSION
        + """
parameters: {word: {type: string, default: one}}
resources:
  server: {type: OS::Heat::DeployedServer, properties: {software_config_transport: POLL_SERVER_CFN}}
  config:
    type: OS::Heat::SoftwareConfig
    properties:
      group: script
      config: |
        #!/bin/sh
        echo "$deploy_action $word"
      inputs: [{name: word}]
  deployment:
    type: OS::Heat::SoftwareDeployment
    properties:
      server: {get_resource: server}
      config: {get_resource: config}
      input_values: {word: {get_param: word}}
      signal_transport: CFN_SIGNAL
outputs: {said: {value: {get_attr: [deployment, deploy_stdout]}}}
""",
    },
}
"""Bodies of creations by the stacks' names."""
PATCH = "PATCH"
ACTIONS = "/actions"
CHANGES: Mapping[str, Sequence[Change]] = {
    "asleep": [Change("POST", ACTIONS, {"suspend": None}, "SUSPEND_COMPLETE")],
    "snap": [Change("POST", "/snapshots", {"name": "s1"}, "SNAPSHOT_COMPLETE")],
    "asleep_tree": [Change("POST", ACTIONS, {"suspend": None}, "SUSPEND_COMPLETE")],
    "half_tree": [Change(PATCH, "", {"parameters": {"fail": True, "word": "other"}}, "UPDATE_FAILED")],
    "resumed": [
        Change("POST", ACTIONS, {"suspend": None}, "SUSPEND_COMPLETE"),
        Change("POST", ACTIONS, {"resume": None}, "RESUME_COMPLETE"),
    ],
    "checked": [Change("POST", ACTIONS, {"check": None}, "CHECK_COMPLETE")],
    "replaced": [Change(PATCH, "", {"parameters": {"word": "three"}}, "UPDATE_COMPLETE")],
    "undone": [
        Change("PUT", "", {"template": FAILING_WORDS, "disable_rollback": False}, "ROLLBACK_COMPLETE")
    ],
    "grown": [Change(PATCH, "", {"parameters": {"size": 3, "text": "b"}}, "UPDATE_COMPLETE")],
    "image": [Change("POST", "/snapshots", {"name": "s1"}, "SNAPSHOT_COMPLETE")],
}
"""By the stacks' names, changes after the creation, each when the one before has ended."""
