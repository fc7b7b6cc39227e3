"""The features of the product.  One that is left out of the list is left out of all programs."""

from collections.abc import Sequence

from ..features.moves.feature import MOVES
from ..features.registry import Feature

FEATURES: Sequence[Feature] = (MOVES,)
