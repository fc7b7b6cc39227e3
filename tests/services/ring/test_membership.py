"""Membership on each backend, with real servers and members that are real processes.

Most of the time goes by in waiting, so the scenarios run side by side.  Each backend has lanes with a server
of their own.  In a lane scenarios run one after the other, for some of them stop the server.
"""

import os
import pathlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from harness import pace
from harness.waiting import wait_for
from services.ring.backends import MAKERS, Backend
from services.ring.cluster import Cluster

LANES = 2
"""Threads in which the scenarios of each backend run."""
Scenario = Callable[[Cluster, Backend], None]
Runs = Mapping[tuple[str, Scenario], Future[None]]


def slack() -> float:
    """Seconds that the machine may add: more when it is slow, or has more to do than it can."""
    return 0.5 * max(pace.measure().wall, os.getloadavg()[0] / len(os.sched_getaffinity(0)))


def who_joins_leaves_dies_or_starts_again_is_noticed_in_time(cluster: Cluster, _: Backend) -> None:
    a, b, c = cluster.start("a", "b", "c")
    assert all(member.now()["shards"] for member in (a, b, c))

    assert c.leave() < 2.0 + slack()
    left_at = time.monotonic()
    assert cluster.wait_settled([a, b]) - left_at < 2 * cluster.poll + slack()

    held = b.now()["shards"]
    b.kill()
    again = cluster.launch("b")
    wait_for(lambda: bool(again.beliefs()), why=cluster.output)
    started = again.beliefs()[0]["at"]
    assert cluster.wait_settled([a, again]) - started < 1.0 + slack()
    assert again.now()["shards"] == held

    again.kill()
    assert again.killed is not None
    after = cluster.wait_settled([a]) - again.killed
    assert cluster.timeout - cluster.heartbeat - cluster.poll < after
    assert after < cluster.timeout + cluster.poll + slack()
    assert not cluster.overlap(again.killed)


def a_paused_member_acts_only_after_it_has_rejoined_as_a_new_incarnation(
    cluster: Cluster, backend: Backend
) -> None:
    a, b = cluster.start("a", "b")
    paused = time.monotonic()
    b.process.pause()
    while not backend.is_usable():  # Who is paused with the lock of all members stops all of them.
        b.process.resume()
        cluster.wait_settled([a, b])
        paused = time.monotonic()
        b.process.pause()
    settled = cluster.wait_settled([a])
    assert settled - paused < cluster.timeout + cluster.poll + slack()
    time.sleep(max(0.0, backend.paused_for - (time.monotonic() - paused)))
    before = b.incarnations()
    resumed = time.monotonic()
    b.process.resume()
    wait_for(lambda: len(b.incarnations()) > len(before), why=cluster.output)
    cluster.wait_settled([a, b])
    rejoined = next(line["at"] for line in b.beliefs() if line["member"] not in (None, *before))
    assert not [span for span in b.spans() if span.until > resumed and span.since < rejoined], (
        cluster.output()
    )
    assert not cluster.overlap(paused, rejoined), cluster.output()
    # Of a newcomer the others hear at their next poll.
    assert cluster.longest_overlap(paused) < cluster.poll + slack(), cluster.output()


def a_restart_of_the_server_changes_nothing_for_good(cluster: Cluster, backend: Backend) -> None:
    a, b = cluster.start("a", "b")
    held = (a.now()["shards"], b.now()["shards"])
    since = time.monotonic()
    backend.restart()
    time.sleep(cluster.heartbeat + cluster.poll)
    cluster.wait_settled([a, b])
    assert (a.now()["shards"], b.now()["shards"]) == held
    assert cluster.longest_overlap(since) < cluster.poll + slack(), cluster.output()


def while_the_server_hangs_ownership_is_frozen_and_nobody_acts(cluster: Cluster, backend: Backend) -> None:
    _outage(cluster, backend, begin=backend.pause, end=backend.resume)


def while_the_server_is_dead_ownership_is_frozen_and_nobody_acts(cluster: Cluster, backend: Backend) -> None:
    _outage(cluster, backend, begin=backend.kill, end=backend.start)


def _outage(
    cluster: Cluster, backend: Backend, *, begin: Callable[[], None], end: Callable[[], None]
) -> None:
    a, b, c = cluster.start("a", "b", "c")
    since = time.monotonic()
    begin()
    wait_for(lambda: not any(m.now()["shards"] or m.now()["member"] for m in (a, b, c)), why=cluster.output)
    acted = max(m.now()["until"] for m in (a, b, c)) - since
    assert acted < cluster.timeout - cluster.heartbeat + slack()
    assert c.leave() < 5.0 + slack()
    time.sleep(max(0.0, 1.5 * cluster.timeout - (time.monotonic() - since)))
    back = time.monotonic()
    end()
    for member, prefix in ((a, "b/"), (b, "a/")):
        views = [line["view"] for line in member.beliefs() if since < line["at"] < back]
        assert all(any(name.startswith(prefix) for name in view) for view in views), cluster.output()
    cluster.wait_settled([a, b])
    assert not cluster.overlap(since, back), cluster.output()
    assert cluster.longest_overlap(since) < cluster.poll + slack(), cluster.output()


SCENARIOS: Sequence[Scenario] = (
    who_joins_leaves_dies_or_starts_again_is_noticed_in_time,
    a_paused_member_acts_only_after_it_has_rejoined_as_a_new_incarnation,
    a_restart_of_the_server_changes_nothing_for_good,
    while_the_server_hangs_ownership_is_frozen_and_nobody_acts,
    while_the_server_is_dead_ownership_is_frozen_and_nobody_acts,
)


def _lane(name: str, runs: Mapping[Scenario, Future[None]], directory: pathlib.Path) -> None:
    backend = MAKERS[name]()
    for scenario, run in runs.items():
        cluster = None
        try:
            backend.start()
            place = directory / f"{name}-{scenario.__name__}"
            place.mkdir()
            cluster = Cluster(backend.url, backend.timing, place)
            scenario(cluster, backend)
            run.set_result(None)
        except BaseException as error:  # noqa: BLE001 - told by the test that waits for this run
            run.set_exception(error)
        finally:
            if cluster is not None:
                cluster.close()
    backend.close()


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """The selected scenarios, begun on several backends at once."""
    chosen = [item.callspec.params for item in request.session.items if item.path == request.path]
    futures: Runs = {(params["name"], params["scenario"]): Future() for params in chosen}
    directory = tmp_path_factory.mktemp("ring")
    parts: dict[tuple[str, int], dict[Scenario, Future[None]]] = {}
    for (name, scenario), run in futures.items():
        parts.setdefault((name, SCENARIOS.index(scenario) % LANES), {})[scenario] = run
    with ThreadPoolExecutor(len(parts)) as pool:
        lanes = [pool.submit(_lane, name, lane, directory) for (name, _), lane in parts.items()]
        yield futures
    for lane in lanes:
        lane.result()


@pytest.mark.alone
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
@pytest.mark.parametrize("name", MAKERS)
def test_membership(runs: Runs, name: str, scenario: Scenario) -> None:
    runs[name, scenario].result()
