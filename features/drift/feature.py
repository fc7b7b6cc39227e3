"""The parts that the observation of drift has in the programs."""

from ..registry import Feature

DRIFT = Feature(
    "drift",
    routes="api.handlers.drift:ROUTES",
    columns="api.handlers.drift:columns",
    duties="conductor.duties.drift:make_duties",
    settings="drift_options:drift_settings",
)
