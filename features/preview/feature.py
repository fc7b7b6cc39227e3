"""The parts that previews and validation have in the programs."""

from ..registry import Feature

PREVIEW = Feature(
    "preview",
    routes="features.preview.routes:ROUTES",
    rules="features.preview.rules:RULES",
)
