"""The parts that the moves from Heat and back have in the programs."""

from ..registry import Feature

MOVES = Feature(
    "moves",
    commands={"export-heat": "heat:ExportHeat", "import-heat": "heat:ImportHeat"},
)
