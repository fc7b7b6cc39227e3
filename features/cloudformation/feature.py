"""The parts that Amazon's CloudFormation API has in the programs."""

from ..registry import Feature

CLOUDFORMATION = Feature(
    "cloudformation",
    routes="features.cloudformation.routes:ROUTES",
    rules="features.cloudformation.rules:RULES",
)
