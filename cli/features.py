"""The features of the product.  One that is left out of the list is left out of all programs."""

import typing
from collections.abc import Iterable, Mapping, Sequence

from oslo_config import cfg

from ..features.cloudformation.feature import CLOUDFORMATION
from ..features.diagnosis.feature import DIAGNOSIS
from ..features.drift.feature import DRIFT
from ..features.moves.feature import MOVES
from ..features.quotas.feature import QUOTAS
from ..features.registry import Feature, load

FEATURES: Sequence[Feature] = (CLOUDFORMATION, DIAGNOSIS, DRIFT, MOVES, QUOTAS)


def settings_of(feature: Feature, conf: cfg.ConfigOpts) -> typing.Any:
    """Return the settings of a feature; None: it has none."""
    return load(f"cli.config.{feature.settings}")(conf) if feature.settings else None


def feature_settings(features: Iterable[Feature], conf: cfg.ConfigOpts) -> Mapping[type, typing.Any]:
    """Return the settings of features, by their types."""
    settings = [settings_of(feature, conf) for feature in features if feature.settings]
    return {type(each): each for each in settings}
