"""The shapes of values that cross folders.

What comes from outside, or is stored as JSON, is a `Json` until a parser has given it a type.
"""

import typing
from collections.abc import Mapping

Json = typing.Any
"""A value as `json.loads` returns it."""
JsonMap = Mapping[str, Json]
"""A JSON object that its reader does not change."""
