"""The places in a pool: how many evaluations run at once, and how many of one project."""

import collections
import contextlib
import threading
from collections.abc import Iterator

from .errors import HelperUnavailable


class Places:
    """Limits the evaluations that run at the same time; one owner gets half at most.  Thread-safe."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._share = max(1, (count + 1) // 2)
        self._taken: collections.Counter[str] = collections.Counter()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def one(self, owner: str | None, timeout: float) -> Iterator[None]:
        """Wait for a place, and keep it for the body.

        :param owner: the project; None: evaluations without a share.
        :raises HelperUnavailable: there was none for `timeout` seconds.
        """
        key = owner or ""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_free(key), timeout):
                raise HelperUnavailable(f"no helper process was free for {timeout:.3g} s")
            self._taken[key] += 1
        try:
            yield
        finally:
            with self._changed:
                self._taken[key] -= 1
                if not self._taken[key]:
                    del self._taken[key]
                self._changed.notify_all()

    def _is_free(self, key: str) -> bool:
        return self._taken.total() < self._count and (not key or self._taken[key] < self._share)
