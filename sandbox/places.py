"""The right to keep a helper busy."""

import collections
import contextlib
import threading
from collections.abc import Iterator

from .errors import HelperUnavailable


class Places:
    """So many evaluations at the same time, of which one owner has half at the most.  Thread-safe."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._share = max(1, (count + 1) // 2)
        self._taken: collections.Counter[str] = collections.Counter()
        self._changed = threading.Condition()

    @contextlib.contextmanager
    def one(self, owner: str | None, timeout: float) -> Iterator[None]:
        """Keep one place, after waiting for it.

        :param owner: None: whoever has no share.
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
