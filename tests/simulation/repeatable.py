"""The same random numbers and ids at each run: what a seed does must not depend on anything else."""

import contextlib
import random
import uuid
from collections.abc import Iterator
from unittest import mock


@contextlib.contextmanager
def repeatable(seed: int) -> Iterator[None]:
    """Ids that follow from the seed: the shard of a stack, and so its owner, follows from its id."""
    dice = random.Random(f"ids {seed}")

    def uuid4() -> uuid.UUID:
        return uuid.UUID(int=dice.getrandbits(128), version=4)

    with mock.patch.object(uuid, "uuid4", uuid4):
        yield
