"""The routes of the API, the columns of its lists, and what handlers use, composed of the features' parts."""

import typing
from collections.abc import Iterable, Mapping, Sequence

from ...api import routes
from ...api.collaborators import ReadColumns
from ...api.operations import Routes
from ...engine.context import EngineContext
from ...features.registry import Feature, load
from ..config.sections import Settings
from ..features import FEATURES
from .parts import Parts
from .policy import rules_of


def routes_of(features: Sequence[Feature]) -> Routes:
    """Return the routes of the kernel and of some features."""
    of_features = [load(feature.routes) for feature in features if feature.routes]
    return routes.compose(of_features, rules_of(features))


def columns_of(features: Iterable[Feature]) -> Sequence[ReadColumns]:
    """Return the functions that read what some features show in lists of stacks."""
    return [load(feature.columns) for feature in features if feature.columns]


def services_of(
    features: Iterable[Feature], parts: Parts, context: EngineContext
) -> Mapping[type, typing.Any]:
    """Return what the handlers of some features use, by type: their settings, and their services."""
    services = dict[type, typing.Any]()
    for feature in features:
        if (settings := Settings(parts.conf).of_feature(feature)) is not None:
            services[type(settings)] = settings
        if feature.services:
            services.update(load(f"cli.wiring.{feature.services}")(parts, context))
    return services


ROUTES = routes_of(FEATURES)
"""All routes of the product."""
