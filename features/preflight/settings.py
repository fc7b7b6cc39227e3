"""The setting of the preflight, for all stacks whose environments set none."""

from dataclasses import dataclass

from ...settings import setting
from ...template.environment import PreflightMode


@dataclass(frozen=True)
class PreflightSettings:
    """The comparison of requests with the clouds of their callers."""

    mode: str = setting(
        "preflight",
        PreflightMode.WARN.value,
        "Comparison of each creation and update with the quotas and things of the user's cloud, before "
        "anything is begun. The services are asked with the user's token, for five seconds at most. The "
        "environment of a stack may set another one.",
        choices={
            "refuse": "a request that the cloud would not carry out is refused, with all findings",
            "warn": "the stack's reason and its first event name what hinders it",
            "off": "nothing is compared, so requests are answered sooner",
        },
        is_mutable=True,
    )
