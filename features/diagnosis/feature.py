"""The parts that diagnosis has in the programs."""

from ..registry import Feature

DIAGNOSIS = Feature(
    "diagnosis",
    routes="features.diagnosis.routes:ROUTES",
    rules="features.diagnosis.rules:RULES",
    services="console:make_console",
    commands={
        "ring show": "ring:RingShow",
        "ring plan": "ring:RingPlan",
        "ring rebalance": "ring:RingRebalance",
        "ring drain": "ring:RingDrain",
        "ring undrain": "ring:RingUndrain",
        "service list": "services:ServiceList",
        "service clean": "services:ServiceClean",
        "stack fail": "stacks:StackFail",
        "stack inspect": "stacks:StackInspect",
        "stack retry": "stacks:StackRetry",
    },
)
