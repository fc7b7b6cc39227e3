"""The types of Heat itself that need no cloud."""

from collections.abc import Mapping

from ..contract import ResourceType
from .none import NoneResource
from .random_string import RandomString
from .test_resource import TestResource
from .value import Value

RESOURCE_TYPES: Mapping[str, type[ResourceType]] = {
    "OS::Heat::None": NoneResource,
    "OS::Heat::RandomString": RandomString,
    "OS::Heat::TestResource": TestResource,
    "OS::Heat::Value": Value,
}
