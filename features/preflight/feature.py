"""The parts that the preflight has in the programs."""

from ..registry import Feature

PREFLIGHT = Feature("preflight", services="preflights:make_preflight")
