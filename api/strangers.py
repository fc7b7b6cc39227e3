"""A limit of requests whose senders turn out to be nobody, by the address of the client.

Whoever reaches the API can send signed requests and logins of agents.  To find out that nobody knows a key
takes a query of the database, or a request to Keystone.  So each address has a few such failures in a second.
Thousands of guests may share an address, so a request with a right signature takes none of them in the end.
A key that has signed rightly from there is looked up even where the address has none left, and the keys that
Stoker makes itself are verified without a lookup.
"""

import ipaddress
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from .errors import FAULTS, Fault, fault_of

PER_SECOND = 5.0
"""Failures of one address, in one process, that are looked up in a second, after a burst of BURST."""
BURST = 100.0
"""Failures that may come at once, and so the requests of unknown senders that are in progress at once."""
MOST_ADDRESSES = 10_000
"""Addresses that are remembered for their failures; of more the earliest is forgotten."""
MOST_KNOWN = 20_000
"""Keys that are remembered since they have signed rightly, each with its address: some 3 MB."""

_KNOWN: tuple[type[Exception], ...] = (Fault, *FAULTS)

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(connected: str, forwarded: str, proxies: Sequence[Network]) -> str:
    """Return the client's address: of IPv6 the first 64 bits, as one client has all that follow.

    :param connected: the address of the connection's other end.
    :param forwarded: the header X-Forwarded-For, to which each proxy appends the address that it has seen.
    :param proxies: the networks of the proxies that are believed.
    """
    address = _address(connected)
    entries = forwarded.split(",")
    while address is not None and entries and any(address in network for network in proxies):
        following = _address(entries.pop())
        if following is None:
            break
        address = following
    if address is None:
        return connected
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.strip().partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class Attempt:
    """A request until its sender is known; belongs to one thread."""

    def __init__(self, strangers: "Strangers", address: str) -> None:
        self._strangers = strangers
        self._address = address
        self._name: str | None = None
        self._holds = False
        self._is_decided = False

    def check(self, name: str) -> None:
        """Take one of the address's failures before anything expensive is done, unless the name is known.

        :param name: the key or account that the request claims to be of.
        :raises Fault: 429, the address has none left.
        """
        if self._name is not None:
            return
        self._name = name
        if not self._strangers.knows(self._address, name):
            self._strangers.take(self._address)
            self._holds = True

    def identified(self) -> None:
        """Give the failure back and remember the name: the sender is who the request claims."""
        self.excuse()
        if self._name is not None:
            self._strangers.remember(self._address, self._name)

    def excuse(self) -> None:
        """Give the failure back: it is not the sender's that nothing was found out."""
        self._is_decided = True
        if self._holds:
            self._holds = False
            self._strangers.give_back(self._address)

    def fail(self) -> None:
        """Count a failure that has cost little, and so was not taken before."""
        self._is_decided = True
        self._strangers.forget(self._address, self._name)

    def ended(self) -> None:
        """Count a failure of a name that was known before, if nobody was identified."""
        if self._name is not None and not self._holds and not self._is_decided:
            self.fail()


class Strangers:
    """Counts failures by the client's address, in buckets that fill evenly.  Thread-safe.

    :param proxies: the networks of the proxies whose X-Forwarded-For is believed.
    :param monotonic: a clock whose seconds never jump.
    """

    def __init__(
        self, proxies: Sequence[Network] = (), *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._proxies = proxies
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._known: OrderedDict[int, None] = OrderedDict()

    @contextmanager
    def attempt(self, connected: str, forwarded: str) -> Iterator[Attempt]:
        """Yield the attempt of a request, which counts as failed if nobody is identified in the context.

        :param connected: the address of the connection's other end.
        :param forwarded: the header X-Forwarded-For.
        """
        attempt = Attempt(self, client_address(connected, forwarded, self._proxies))
        try:
            yield attempt
        except _KNOWN as error:
            fault = fault_of(error)
            if fault is None or fault.status >= 500:
                attempt.excuse()
            raise
        finally:
            attempt.ended()

    def take(self, address: str) -> None:
        """Take a failure of an address.

        :raises Fault: 429, it has none left.
        """
        with self._lock:
            left = self._fill(address)
            if left >= 1:
                self._keep(address, left - 1)
                return
            self._keep(address, left)
        text = "Too many requests of this address had unknown keys or wrong secrets; try again later"
        raise Fault(429, "TooManyRequests", text, retry_after=1)  # It has PER_SECOND more by then.

    def give_back(self, address: str) -> None:
        """Give a failure back that was none."""
        with self._lock:
            self._keep(address, self._fill(address) + 1)

    def knows(self, address: str, name: str) -> bool:
        """Return whether a key or account was right the last time that it came from an address."""
        return hash((address, name)) in self._known

    def remember(self, address: str, name: str) -> None:
        """Note that a key or account was right."""
        key = hash((address, name))
        with self._lock:
            self._known[key] = None
            self._known.move_to_end(key)
            if len(self._known) > MOST_KNOWN:
                self._known.popitem(last=False)

    def forget(self, address: str, name: str | None) -> None:
        """Note that a request has failed that has taken no failure."""
        with self._lock:
            self._known.pop(hash((address, name)), None)
            self._keep(address, max(0.0, self._fill(address) - 1))

    def _fill(self, address: str) -> float:
        """Take an address's bucket away, and return what it holds now."""
        now = self._monotonic()
        left, filled_at = self._buckets.pop(address, (BURST, now))
        return min(BURST, left + (now - filled_at) * PER_SECOND)

    def _keep(self, address: str, left: float) -> None:
        """Keep a bucket, unless it is full."""
        if left < BURST:
            self._buckets[address] = (left, self._monotonic())
        if len(self._buckets) > MOST_ADDRESSES:
            self._buckets.popitem(last=False)


NO_ATTEMPT = Attempt(Strangers(), "")
"""The attempt of a request whose sender is known before its handler is called."""
