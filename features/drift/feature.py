"""The parts that the observation of drift has in the programs."""

from ..registry import Feature

DRIFT = Feature(
    "drift",
    routes="features.drift.handlers:ROUTES",
    rules="features.drift.rules:RULES",
    columns="features.drift.handlers:columns",
    duties="features.drift.duty:make_duties",
    metrics="features.drift.metrics:METRICS",
    commands={"reconcile": "reconcile:Reconcile"},
    settings="features.drift.rows:DriftSettings",
)
