"""The report of a run: a text, and a page with the time line of faults, ownership and throughput."""

import collections
import html
import itertools
import pathlib
import statistics
import typing
from collections.abc import Iterable, Mapping, Sequence

from chaos.history import Event, FaultSpan, History, Outcome, Read, Sample, Signal, Write

WIDTH = 1200
LEFT = 190
ROW = 16
HEIGHT = 120
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#b07aa1", "#76b7b2", "#edc948", "#9c755f")
STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; color: #222; }
svg { display: block; margin-bottom: 1.5em; background: #fafafa; }
text { font: 11px system-ui, sans-serif; fill: #333; }
pre { white-space: pre-wrap; }
"""


def summary(name: str, seed: int, history: History, violations: Sequence[str]) -> str:
    """Return the text of a report."""
    writes = history.of(Write)
    outcomes = collections.Counter(f"{write.kind} {write.outcome}" for write in writes)
    faults = collections.Counter(span.kind for span in history.of(FaultSpan))
    events = history.of(Event)
    signals = history.of(Signal)
    timeouts = sum(event.of_stack and "timed out" in event.reason for event in events)
    refused = collections.Counter(write.status for write in writes if write.outcome != Outcome.ACCEPTED)
    lines = [
        f"set {name}, seed {seed}: {'green' if not violations else f'{len(violations)} violations'}",
        f"requests: {len(writes)}, accepted {sum(w.outcome == Outcome.ACCEPTED for w in writes)}; "
        f"reads: {len(history.of(Read))}; events: {len(events)}; timeouts: {timeouts}",
        f"signals of guests: {len(signals)}, accepted {sum(s.outcome == Outcome.ACCEPTED for s in signals)}",
        f"faults: {sum(faults.values())}: {_counts(faults)}",
        f"outcomes: {_counts(outcomes)}",
        f"statuses of other answers (0: not sent, -1: no answer): {_counts(refused)}",
        *(f"VIOLATION: {violation}" for violation in violations),
    ]
    return "\n".join(lines) + "\n"


def _counts(counter: Mapping[typing.Any, int]) -> str:
    return ", ".join(f"{key} {count}" for key, count in sorted(counter.items(), key=lambda item: -item[1]))


def page(title: str, text: str, history: History) -> str:
    """Return the page; it needs nothing else."""
    instants = [event.at for event in history.of(Event)] + [span.ended for span in history.of(FaultSpan)]
    instants += [write.began for write in history.of(Write)]
    began = min([span.began for span in history.of(FaultSpan)] + instants, default=0.0)
    axis = _Axis(began, max(instants, default=began) - began or 1.0)
    drawings = [
        ("Faults", _faults(axis, history.of(FaultSpan))),
        ("Shards by owner", _ownership(axis, history.of(Sample))),
        ("Events each second", _rate(axis, [event.at for event in history.of(Event)])),
        (
            "Accepted requests each second",
            _rate(axis, [w.ended for w in history.of(Write) if w.outcome == Outcome.ACCEPTED]),
        ),
        (
            "Requests without an answer each second",
            _rate(axis, [w.ended for w in history.of(Write) if w.outcome == Outcome.UNKNOWN]),
        ),
        ("Slowest read of each second, in seconds", _slowest(axis, history.of(Read))),
    ]
    parts = "".join(f"<h2>{html.escape(name)}</h2>{drawing}" for name, drawing in drawings)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{STYLE}</style><h1>{html.escape(title)}</h1><pre>{html.escape(text)}</pre>{parts}</html>"
    )


class _Axis:
    """The horizontal axis: instants as pixels."""

    def __init__(self, began: float, seconds: float) -> None:
        self.began = began
        self.seconds = seconds

    def at(self, instant: float) -> float:
        """Return the place of an instant."""
        return LEFT + (instant - self.began) / self.seconds * (WIDTH - LEFT - 10)

    def svg(self, height: float, parts: Iterable[str]) -> str:
        """Return a drawing with the seconds below it."""
        step = max(10, round(self.seconds / 12 / 10) * 10)
        ticks = "".join(
            f'<text x="{self.at(self.began + second):.0f}" y="{height + 14:.0f}">{second} s</text>'
            for second in range(0, int(self.seconds) + 1, step)
        )
        return f'<svg width="{WIDTH}" height="{height + 20:.0f}">{"".join(parts)}{ticks}</svg>'


def _faults(axis: _Axis, spans: Sequence[FaultSpan]) -> str:
    targets = sorted({span.target for span in spans})
    kinds = sorted({span.kind for span in spans})
    colours = dict(zip(kinds, itertools.cycle(COLOURS)))
    parts = [
        f'<text x="4" y="{row * ROW + 12}">{html.escape(target)}</text>' for row, target in enumerate(targets)
    ]
    for span in spans:
        start = axis.at(span.began)
        width = max(2.0, axis.at(span.ended) - start)
        top = targets.index(span.target) * ROW + 2
        label = html.escape(f"{span.kind}: {span.target}, {span.ended - span.began:.1f} s")
        parts.append(
            f'<rect x="{start:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 4}" '
            f'fill="{colours[span.kind]}"><title>{label}</title></rect>'
        )
    legend = "".join(
        f'<span style="color:{colour}">&#9632;</span> {html.escape(kind)} &nbsp; '
        for kind, colour in colours.items()
    )
    return axis.svg(len(targets) * ROW + 4, parts) + f"<p>{legend}</p>"


def _ownership(axis: _Axis, samples: Sequence[Sample]) -> str:
    hosts = sorted({host for sample in samples for host in sample.shards})
    colours = dict(zip(hosts, itertools.cycle(COLOURS)))
    most = max((sum(sample.shards.values()) for sample in samples), default=1) or 1
    parts = []
    for sample, later in itertools.pairwise(samples):
        start = axis.at(sample.at)
        width = axis.at(later.at) - start + 0.3
        top = float(HEIGHT)
        for host in hosts:
            height = sample.shards.get(host, 0) / most * HEIGHT
            top -= height
            parts.append(
                f'<rect x="{start:.1f}" y="{top:.1f}" width="{width:.1f}" height="{height:.1f}" '
                f'fill="{colours[host]}"/>'
            )
    parts += [
        f'<text x="4" y="{row * ROW + 12}" style="fill:{colours[host]}">{html.escape(host)}</text>'
        for row, host in enumerate(hosts)
    ]
    return axis.svg(HEIGHT, parts)


def _rate(axis: _Axis, instants: Sequence[float]) -> str:
    return _bars(axis, collections.Counter(int(instant - axis.began) for instant in instants))


def _slowest(axis: _Axis, reads: Sequence[Read]) -> str:
    slowest: dict[int, float] = collections.defaultdict(float)
    for read in reads:
        second = int(read.ended - axis.began)
        slowest[second] = max(slowest[second], read.ended - read.began)
    return _bars(axis, slowest)


def _bars(axis: _Axis, values: Mapping[int, float]) -> str:
    most = max(values.values(), default=1) or 1
    width = max(1.0, axis.at(axis.began + 1) - axis.at(axis.began) - 0.5)
    parts = [
        f'<text x="4" y="12">most {most:.1f}, mean {statistics.fmean(values.values() or [0]):.1f}</text>'
    ]
    for second, value in sorted(values.items()):
        height = value / most * HEIGHT
        start = axis.at(axis.began + second)
        parts.append(
            f'<rect x="{start:.1f}" y="{HEIGHT - height:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{COLOURS[0]}"><title>{second} s: {value:.2f}</title></rect>'
        )
    return axis.svg(HEIGHT, parts)


def write_report(folder: pathlib.Path, title: str, text: str, history: History) -> None:
    """Write both reports to a folder."""
    (folder / "report.txt").write_text(text)
    (folder / "report.html").write_text(page(title, text, history))
