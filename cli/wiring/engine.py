"""The engine, from the parts of a process: the context of the use cases."""

from dataclasses import replace

from oslo_config import cfg

from ...engine.compile import GoalCompiler
from ...engine.context import EngineContext, EngineSettings
from ...engine.nested_stacks import NestedStacks
from ...engine.template_urls import FetchLimits, TemplateFetcher
from ...keystone.delegated_auth import NO_TRUSTS
from ...keystone.delegations import Delegations
from ..config.sections import Settings
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
            Settings(parts.conf).region,
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
    quotas = Settings(conf).project.quotas()
    settings = Settings(conf).engine
    return replace(
        settings,
        shard_count=shard_count,
        quotas=quotas,
        limits=replace(settings.limits, config_bytes=settings.software.config_bytes),
        software=replace(settings.software, quotas=quotas),
    )


def fetch_limits(conf: cfg.ConfigOpts) -> FetchLimits:
    """Return the limits of templates that are fetched: no longer than a request, or a template, may be."""
    most = Settings(conf).api_limits.body_bytes
    template = Settings(conf).engine.limits.template_bytes
    return replace(Settings(conf).fetches, max_bytes=min(most, template or most))
