"""Nested stacks over three conductor processes: a wide one, a tall one, their rows, how fast parents wake.

Usage:
    python benchmarks/nested.py             start RabbitMQ, PostgreSQL, etcd and three conductors
    options: --children 1000   --depth 5   --width 3   --wakes 50

Prints, for a stack of many equal children, a group of as many and a tree: seconds until the root is
complete, and each conductor's part of the ended actions.  For the wide one also the rows of templates,
environments and files, and the bytes that one more child takes in all tables, indexes included.  And first of
all the time from a child's end (the moment in its event) to the beginning of its parent's next resource, on
the idle system.
"""

import argparse
import json
import pathlib
import statistics
import sys
import time
import typing

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "tests"))

import sqlalchemy as sa
from harness import templates
from harness.deployment import Deployment
from own_installation import own_installation

HOSTS = ("one", "two", "three")
LEAF = "file:///leaf.yaml"
WITHIN = 1800.0
Json = typing.Any


def query(deployment: Deployment, sql: str, **values: Json) -> list[Json]:
    """Rows."""
    engine = sa.create_engine(deployment.database_url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        return list(conn.execute(sa.text(sql), values).all())


def leaf() -> str:
    """A child's template."""
    return json.dumps(templates.template({"r": templates.one(value="x")}))


def many(count: int, kind: str) -> Json:
    """A template of so many children."""
    return templates.template({f"n{index}": {"type": kind} for index in range(count)})


def run(deployment: Deployment, name: str, template: Json, files: Json) -> str:
    """Create a stack, and tell how it went; its id."""
    began = time.monotonic()
    path = deployment.create(name, template, files=files, timeout_mins=60)
    view = deployment.wait_final(path, WITHIN)
    assert view["stack_status"] == "CREATE_COMPLETE", view["stack_status_reason"]
    took = time.monotonic() - began
    root = path.rsplit("/", 1)[1]
    parts = query(
        deployment,
        "SELECT conductor, count(*) FROM event e JOIN stack s ON s.id = e.stack_id "
        "WHERE s.root_id = :root AND e.status = 'COMPLETE' AND conductor IS NOT NULL GROUP BY 1 ORDER BY 1",
        root=root,
    )
    total = sum(count for _, count in parts)
    [(stacks,)] = query(deployment, "SELECT count(*) FROM stack WHERE root_id = :root", root=root)
    shares = ", ".join(f"{host} {100 * count / total:.0f} %" for host, count in parts)
    print(f"{name}: {stacks} stacks in {took:.1f} s ({stacks / took:.0f}/s); {shares}")
    return root


def size(deployment: Deployment) -> int:
    """Bytes of all tables with their indexes."""
    sql = (
        "SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c "
        "JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind = 'r'"
    )
    return int(query(deployment, sql)[0][0])


def wide(deployment: Deployment, count: int) -> None:
    """Many equal children."""
    run(deployment, "wide-10", many(10, LEAF), {LEAF: leaf()})
    before = size(deployment)
    [(contents,)] = query(deployment, "SELECT count(*) FROM content")
    run(deployment, f"wide-{count}", many(count, LEAF), {LEAF: leaf()})
    [(after,)] = query(deployment, "SELECT count(*) FROM content")
    print(f"templates, environments, files: {after - contents} more for {count} children")
    each = (size(deployment) - before) / count / 1024
    print(f"{each:.1f} KiB per child in all tables, its finished tasks included")


def group(deployment: Deployment, count: int) -> None:
    """An OS::Heat::ResourceGroup of stacks."""
    properties = {"count": count, "resource_def": {"type": LEAF}}
    body = {"type": "OS::Heat::ResourceGroup", "properties": properties}
    run(deployment, f"group-{count}", templates.template({"g": body}), {LEAF: leaf()})


def tall(deployment: Deployment, depth: int, width: int) -> None:
    """A tree."""
    files = {LEAF: leaf()}
    below = LEAF
    for level in range(1, depth):
        files[f"file:///level{level}.yaml"] = json.dumps(many(width, below))
        below = f"file:///level{level}.yaml"
    run(deployment, f"tree-{depth}-{width}", many(width, below), files)


def wakes(deployment: Deployment, count: int) -> None:
    """A chain of children, each of which begins when the one before has ended."""
    chain = {
        f"n{index}": {"type": LEAF, **({"depends_on": f"n{index - 1}"} if index else {})}
        for index in range(count)
    }
    root = run(deployment, "chain", templates.template(chain), {LEAF: leaf()})
    ends = query(
        deployment,
        "SELECT r.name, e.at FROM event e JOIN stack s ON s.id = e.stack_id "
        "JOIN resource r ON r.id = s.parent_resource_id WHERE s.root_id = :root AND e.resource_name = s.name "
        "AND e.status = 'COMPLETE' AND s.parent_id IS NOT NULL",
        root=root,
    )
    begins = dict(
        query(
            deployment,
            "SELECT resource_name, at FROM event WHERE stack_id = :root AND status = 'IN_PROGRESS'",
            root=root,
        )
    )
    late = sorted(
        begins[f"n{int(name[1:]) + 1}"] - at for name, at in ends if f"n{int(name[1:]) + 1}" in begins
    )
    print(
        f"from a child's end to its parent's next step: median {1000 * statistics.median(late):.0f} ms, "
        f"p90 {1000 * late[round(0.9 * (len(late) - 1))]:.0f} ms"
    )


def main() -> None:
    """Measure, as the text of the module describes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--children", type=int, default=1000)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--width", type=int, default=3)
    parser.add_argument("--wakes", type=int, default=50)
    options = parser.parse_args()
    with own_installation(*HOSTS) as deployment:
        wakes(deployment, options.wakes)
        wide(deployment, options.children)
        group(deployment, options.children)
        tall(deployment, options.depth, options.width)


if __name__ == "__main__":
    main()
