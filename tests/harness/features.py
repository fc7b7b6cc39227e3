"""Collaborators of the handlers of features, for tests of the API."""

import typing
from collections.abc import Mapping

from stoker.features.drift.rows import DriftSettings

FEATURES_OF_API: Mapping[type, typing.Any] = {DriftSettings: DriftSettings(enabled=True)}
"""Collaborators by type, as `Services.features` has them; drift is observed."""
