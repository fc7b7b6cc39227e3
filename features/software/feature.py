"""The parts that software configs and deployments have in the programs; steps and guests use the rows."""

from ..registry import Feature

SOFTWARE = Feature(
    "software",
    routes="features.software.handlers:ROUTES",
    rules="features.software.rules:RULES",
)
