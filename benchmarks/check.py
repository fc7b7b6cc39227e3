"""Compares what a resource costs with what it cost when `ratios.json` was stored.

Usage:
    python benchmarks/check.py             exit code 1 where something became dearer by more than its bound
    python benchmarks/check.py --store     store the present costs

In rounds of all cases and the bare loop of floor.py, on RabbitMQ, PostgreSQL and etcd: the least statements
and messages of a resource, and the least processor time of the conductors as a ratio to the least of the
bare loop.  Whatever else a machine does takes processor time from both, now more and now less, and makes
batches smaller, so there are more rounds as long as something seems to be too dear.
"""

import argparse
import json
import pathlib
import sys
import typing
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import end_to_end
from end_to_end import Bench, Result
from harness import templates

STORED = pathlib.Path(__file__).with_name("ratios.json")
ROUNDS = 3
"""Rounds that are enough where nothing is too dear in them."""
MOST_ROUNDS = 12
BOUNDS = {"statements": 1.15, "messages": 1.15, "processor": 1.3}
"""Times the stored cost that is too dear."""
PER_RUN = {"statements": 150, "messages": 10, "processor": 0}
"""Statements and messages that a run on a slow machine has more: looks of the benchmark, and duties."""
Json = typing.Any
Costs = dict[str, dict[str, float]]
CASES: dict[str, Callable[[], Json]] = {
    "flat 1000": lambda: templates.flat(1000),
    "chain 100": lambda: templates.chain(100),
    "layers 10 x 20": lambda: templates.layered(10, 20),
}
RESOURCES = {"flat 1000": 1000, "chain 100": 100, "layers 10 x 20": 200}


def measure(is_enough: Callable[[Costs], bool]) -> Costs:
    """Return the costs of a resource, by case and kind of cost.

    :param is_enough: tells whether there need be no further round, from the costs up to now.
    """
    with end_to_end.own_deployment() as (url, usage, floors):
        bench = Bench(url, 1, usage, pause=0.25)
        print(end_to_end.HEADER)
        bench.case("warm-up", lambda: templates.flat(100))
        runs: dict[str, list[Result]] = {name: [] for name in CASES}
        floor_cpu = float("inf")
        for number in range(1, MOST_ROUNDS + 1):
            for name, make in CASES.items():
                floor_cpu = min(floor_cpu, floors.flat(1000).cpu)
                runs[name].append(bench.case(name, make))
            costs = {name: _costs(results, floor_cpu) for name, results in runs.items()}
            if number >= ROUNDS and is_enough(costs):
                break
    return costs


def _costs(results: list[Result], floor_cpu: float) -> dict[str, float]:
    used = [(result.used, result.resources) for result in results if result.used is not None]
    return {
        "statements": min(usage.statements / count for usage, count in used),
        "messages": min(usage.messages / count for usage, count in used),
        "processor": min(usage.cpu / count for usage, count in used) / floor_cpu,
    }


def compare(stored: Costs, measured: Costs) -> list[str]:
    """Return a line for each cost that is above its bound."""
    return [
        f"{case}: {kind} {measured[case][kind]:.2f}, stored {cost:.2f}, at most {most:.2f}"
        for case, costs in stored.items()
        for kind, cost in costs.items()
        for most in (cost * BOUNDS[kind] + PER_RUN[kind] / RESOURCES[case],)
        if measured[case][kind] > most
    ]


def main() -> int:
    """Measure, as the text of the module describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--store", action="store_true")
    options = parser.parse_args()
    if options.store:
        costs = measure(lambda costs: False)
        rounded = {
            case: {kind: round(cost, 3) for kind, cost in kinds.items()} for case, kinds in costs.items()
        }
        STORED.write_text(json.dumps(rounded, indent=4) + "\n")
        return 0
    stored = json.loads(STORED.read_text())
    dearer = compare(stored, measure(lambda costs: not compare(stored, costs)))
    print("\n".join(dearer) or "nothing became dearer")
    return 1 if dearer else 0


if __name__ == "__main__":
    sys.exit(main())
