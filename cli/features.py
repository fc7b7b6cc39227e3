"""The features of the product.  One that is left out of the list is left out of all programs."""

from collections.abc import Sequence

from ..features.cloudformation.feature import CLOUDFORMATION
from ..features.diagnosis.feature import DIAGNOSIS
from ..features.drift.feature import DRIFT
from ..features.moves.feature import MOVES
from ..features.preflight.feature import PREFLIGHT
from ..features.preview.feature import PREVIEW
from ..features.quotas.feature import QUOTAS
from ..features.registry import Feature
from ..features.software.feature import SOFTWARE

FEATURES: Sequence[Feature] = (
    CLOUDFORMATION,
    DIAGNOSIS,
    DRIFT,
    MOVES,
    PREFLIGHT,
    PREVIEW,
    QUOTAS,
    SOFTWARE,
)
