"""The cost of observing drift: processor time and requests for many resources of one project.

Usage:
    python benchmarks/drift.py [--resources 10000] [--in-stack 10] [--interval 3600]

The cloud is scripted: it answers lists in pages of 1,000 without a network, so only Stoker's own work counts.
The exit code is 1 if an observation takes more than 1 % of a core at the interval, or more requests than
lists have pages.
"""

import argparse
import base64
import collections
import io
import json
import pathlib
import sys
import tempfile
import time
import typing
import urllib.parse
import uuid

import requests
from keystoneauth1.adapter import Adapter
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from stoker.db import resources, stacks
from stoker.db.engine import Database
from stoker.db.ids import ContentId, ResourceId, StackId
from stoker.db.rows import Resource, Stack
from stoker.db.schema import upgrade
from stoker.db.states import Status
from stoker.features.drift import rows as drift
from stoker.features.drift.context import DriftServices
from stoker.features.drift.observer import ProjectObserver
from stoker.features.drift.records import DriftRecords
from stoker.features.drift.rows import DriftState
from stoker.resources.registry import ResourceRegistry
from stoker.sealing.sealer import Sealer

Json = typing.Any
KEY = base64.b64encode(bytes(range(64))).decode()
PAGE = 1000
MOST = 0.01
"""Share of a core that an observation may take."""
KINDS: dict[str, tuple[str, str, Json, Json]] = {
    "OS::Neutron::Net": ("/networks", "networks", {"name": "n"}, {"name": "n", "admin_state_up": True}),
    "OS::Neutron::Port": ("/ports", "ports", {"network": "n"}, {"name": "p", "admin_state_up": True}),
    "OS::Cinder::Volume": (
        "/volumes/detail",
        "volumes",
        {"size": 1, "name": "v", "metadata": {"a": "b"}},
        {"size": 1, "name": "v", "metadata": {"a": "b"}},
    ),
    "OS::Neutron::Router": ("/routers", "routers", {"name": "r"}, {"name": "r", "admin_state_up": True}),
}
"""By type: path of its list, key of the members, properties of a resource, fields of a thing."""


class ScriptedCloud(requests.adapters.BaseAdapter):
    """Answers lists.

    :ivar requests: number of requests by path.
    """

    def __init__(self) -> None:
        super().__init__()
        self.things: dict[str, list[Json]] = collections.defaultdict(list)
        self.requests: collections.Counter[str] = collections.Counter()
        self._keys = {path: items for path, items, _, _ in KINDS.values()}

    def send(self, request: requests.PreparedRequest, *args: Json, **kwargs: Json) -> requests.Response:
        """Return one page of a list."""
        url = urllib.parse.urlsplit(str(request.url))
        self.requests[url.path] += 1
        start = int(urllib.parse.parse_qs(url.query).get("marker", ["0"])[0])
        items = self._keys[url.path]
        things = self.things[url.path]
        body: dict[str, Json] = {items: things[start : start + PAGE]}
        if start + PAGE < len(things):
            body[f"{items}_links"] = [{"rel": "next", "href": f"{url.path}?marker={start + PAGE}"}]
        response = requests.Response()
        response.status_code = 200
        response.headers["Content-Type"] = "application/json"
        response.raw = io.BytesIO(json.dumps(body).encode())
        response.url = str(request.url)
        response.request = request
        return response

    def close(self) -> None:
        """Do nothing."""

    def adapter(self, session: Json, service: str, *versions: Json) -> Adapter:
        """Return the endpoint of every service."""
        http = requests.Session()
        http.mount("http://", self)
        return Adapter(Session(auth=Token("http://cloud", "token"), session=http), service_type=service)


def fill(database: Database, cloud: ScriptedCloud, count: int, in_stack: int) -> StackId:
    """Store the stacks with their resources, and make their things; return the last stack."""
    kinds = sorted(KINDS)
    number = 0
    stack_id: Json = ""
    while number < count:
        stack_id = str(uuid.uuid4())
        content = ContentId("c")
        stack = Stack(
            id=stack_id,
            project_id="project",
            name=f"s{number}",
            live_name=f"s{number}",
            root_id=stack_id,
            action="CREATE",
            status=Status.COMPLETE,
            traversal=stack_id,
            shard=7,
            template_id=content,
            environment_id=content,
            files_id=content,
            created_at=1000.0 + number,
        )
        rows = []
        for place in range(min(in_stack, count - number)):
            kind = kinds[place % len(kinds)]
            path, _, properties, fields = KINDS[kind]
            physical_id = str(uuid.uuid4())
            cloud.things[path].append(
                {"id": physical_id, "status": "ACTIVE", "description": "x" * 100, **fields}
            )
            number += 1
            rows.append(
                Resource(
                    id=ResourceId(number),
                    stack_id=stack_id,
                    name=f"r{place}",
                    type=kind,
                    plugin=kind,
                    action="CREATE",
                    status=Status.COMPLETE,
                    reason="",
                    created_at=1000.0,
                    updated_at=1000.0,
                    physical_id=physical_id,
                    properties=properties,
                    definition={"type": kind, "plugin": kind, "properties": properties},
                )
            )

        def store(conn: Json, stack: Stack = stack, rows: list[Resource] = rows) -> None:
            stacks.insert(conn, stack)
            resources.insert_many(conn, rows)

        database.write(store)
    return stack_id


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--resources", type=int, default=10_000)
    parser.add_argument("--in-stack", type=int, default=10)
    parser.add_argument("--interval", type=float, default=3600.0)
    arguments = parser.parse_args()
    cloud = ScriptedCloud()
    with tempfile.TemporaryDirectory() as folder:
        database = Database(f"sqlite:///{pathlib.Path(folder)}/bench.sqlite")
        upgrade.upgrade(database)
        stack_id = fill(database, cloud, arguments.resources, arguments.in_stack)
        services = DriftServices(
            database=database,
            registry=ResourceRegistry.installed(),
            sealer=Sealer([KEY]),
            clock=time.time,
            session=lambda root_id: typing.cast(Json, None),
            host="bench",
            endpoints=typing.cast(Json, cloud),
        )
        observer = ProjectObserver(services, DriftRecords(services, interval=arguments.interval, heal=None))
        bad = False
        for name in ("first", "second"):
            cloud.requests.clear()
            began = time.process_time()
            observer.observe("project")
            seconds = time.process_time() - began
            pages = sum(-(-len(things) // PAGE) for things in cloud.things.values())
            total = cloud.requests.total()
            share = seconds / arguments.interval
            print(f"{name} observation of {arguments.resources} resources: {seconds:.2f} s of a processor")
            print(f"  share of a core at {arguments.interval:.0f} s: {share:.3%}; requests: {total}")
            bad = bad or share > MOST or total > pages
        read = database.read(lambda conn: drift.of_tree(conn, stack_id, "project"))
        database.close()
    if read.state is not DriftState.IN_SYNC:
        print(f"a stack is {read.state}: {read.reasons or read.resources}")
    return int(bad or read.state is not DriftState.IN_SYNC)


if __name__ == "__main__":
    sys.exit(main())
