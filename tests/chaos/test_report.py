"""The report of a run: a text with its numbers, and a page that needs nothing else."""

import re

from chaos.history import Event, FaultSpan, History, Outcome, Read, Sample, Write
from chaos.report import page, summary

HISTORY = History(
    [
        Write(0, "s", "name", "create", 1, 100.0, 100.5, Outcome.ACCEPTED, 201, 60.0),
        Write(0, "s", "name", "update", 2, 110.0, 140.0, Outcome.UNKNOWN, -1, 60.0),
        Read("s", "CREATE", "COMPLETE", 1, 105.0, 107.5, "api-1"),
        Event("s", True, "name", "CREATE", "FAILED", "Create timed out", 160.0),
        FaultSpan("killed", "conductor-1 & co", 101.0, 103.0),
        FaultSpan("cut", "api-1 to database", 104.0, 112.0),
        Sample(100.0, {"conductor-1": 4096}),
        Sample(130.0, {"conductor-1": 2048, "conductor-2": 2048}),
    ]
)


def test_the_text_counts_requests_faults_and_violations() -> None:
    text = summary("postgresql", 7, HISTORY, ["it hangs"])
    assert "set postgresql, seed 7: 1 violations\n" in text
    assert "requests: 2, accepted 1; reads: 1; events: 1; timeouts: 1\n" in text
    assert "faults: 2: killed 1, cut 1\n" in text
    assert "VIOLATION: it hangs\n" in text
    assert ": green\n" in summary("postgresql", 7, HISTORY, [])


def test_the_page_shows_each_fault_and_owner_and_loads_nothing() -> None:
    html = page("Chaos <1>", "a < b", HISTORY)
    assert "<title>Chaos &lt;1&gt;</title>" in html
    assert "<pre>a &lt; b</pre>" in html
    for label in ("killed: conductor-1 &amp; co, 2.0 s", "cut: api-1 to database, 8.0 s", ">conductor-2<"):
        assert label in html
    assert not re.search(r"(src|href)=|url\(|<script|@import", html)


def test_the_page_of_an_empty_run_is_a_page() -> None:
    assert page("empty", "", History()).endswith("</html>")
