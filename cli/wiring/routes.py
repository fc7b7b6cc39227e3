"""The routes of the API, composed of the kernel's and those of the features."""

from collections.abc import Iterable

from ...api import routes
from ...api.operations import Routes
from ...features.registry import Feature, load
from ..features import FEATURES


def routes_of(features: Iterable[Feature]) -> Routes:
    """Return the routes of the kernel and of some features."""
    return routes.compose(load(feature.routes) for feature in features if feature.routes)


ROUTES = routes_of(FEATURES)
"""All routes of the product."""
