"""The examples of properties: the same ones each time, for a fault shall not live or die by chance."""

import hypothesis


def same_examples() -> None:
    """Let hypothesis give the same examples to a test each time."""
    hypothesis.settings.register_profile(
        "mutate", hypothesis.settings(derandomize=True, database=None, deadline=None)
    )
    hypothesis.settings.load_profile("mutate")
