"""The engine, from the parts of a process: the context of the use cases."""

from oslo_config import cfg

from ...engine.compile import GoalCompiler
from ...engine.context import EngineContext, EngineSettings
from ...engine.nested_stacks import NestedStacks
from ...engine.planning.plan import Defaults
from ...engine.template_urls import TemplateFetcher
from ...engine.tree_budget import TreeLimits
from ...keystone.delegated_auth import NO_TRUSTS
from ...keystone.delegations import Delegations
from ...template.compile import Limits
from ..config.environment_options import fetch_limits
from ..config.language_options import region
from ..config.limit_options import budget_limits, quotas, software_limits
from ..config.stack_options import signal_limits
from .parts import Parts


def make_engine_context(parts: Parts) -> EngineContext:
    """Make the context of the use cases."""
    clock = parts.database.clock
    settings = engine_settings(parts.conf, parts.shard_count)
    return EngineContext(
        database=parts.database,
        registry=parts.catalogue,
        sealer=parts.sealer,
        hints=parts.messaging.outbox,
        clock=clock,
        settings=settings,
        compiler=GoalCompiler(
            parts.catalogue,
            settings.limits,
            region(parts.conf),
            has_cloud=parts.trusts is not NO_TRUSTS,
        ),
        delegations=Delegations(
            database=parts.database, sealer=parts.sealer, trusts=parts.trusts, clock=clock
        ),
    )


def make_nested_stacks(parts: Parts, context: EngineContext) -> NestedStacks:
    """Make the use cases of nested stacks, which fetch templates by the rules of requests."""
    return NestedStacks(context, TemplateFetcher(fetch_limits(parts.conf)).fetch_nested)


def engine_settings(conf: cfg.ConfigOpts, shard_count: int) -> EngineSettings:
    """Make the settings of the use cases.

    :param shard_count: number of shards with which the database was created.
    """
    section = conf.stacks
    return EngineSettings(
        shard_count=shard_count,
        limits=Limits(
            section.max_template,
            section.max_resources,
            section.max_depth,
            budget_limits(conf),
            section.max_software_config,
        ),
        defaults=Defaults(
            section.resource_timeout,
            section.resource_retries,
            clock_stands=section.held_time == "stands",
            cancel_grace=section.cancel_grace,
        ),
        stack_timeout=section.timeout,
        max_snapshots=section.max_snapshots,
        quotas=quotas(conf),
        software=software_limits(conf),
        signals=signal_limits(conf),
        tree=TreeLimits(section.max_tree_rows, section.max_tree_bytes),
    )
