"""The routes of the API, and the columns of its lists, composed of the kernel's and those of the features."""

from collections.abc import Iterable, Sequence

from ...api import routes
from ...api.collaborators import ReadColumns
from ...api.operations import Routes
from ...features.registry import Feature, load
from ..features import FEATURES


def routes_of(features: Iterable[Feature]) -> Routes:
    """Return the routes of the kernel and of some features."""
    return routes.compose(load(feature.routes) for feature in features if feature.routes)


def columns_of(features: Iterable[Feature]) -> Sequence[ReadColumns]:
    """Return the functions that read what some features show in lists of stacks."""
    return [load(feature.columns) for feature in features if feature.columns]


ROUTES = routes_of(FEATURES)
"""All routes of the product."""
