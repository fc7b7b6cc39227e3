"""Stacks of a real Heat, on a real cloud, continue as Stoker's."""

import base64
import hashlib
import hmac
import json
import re
import typing
import urllib.parse

import pytest
import requests
from harness.silent_proxy import SilentProxy
from harness.waiting import wait_for
from heat.conftest import Moved, deployment_status, writes
from heat.stacks import FAILED, SECRET, STACKS, SUSPENDED
from stoker.features.moves.inward.event_rows import IMPORTED

pytestmark = [pytest.mark.full, pytest.mark.needs("guests")]

Json = typing.Any
ALLOWED = {
    "stack_user_project_id",  # Stoker needs no project for accounts of resources.
    "required_by",  # Where a dependency follows from the kinds of resources, Stoker has fewer.
    "links",
}
"""Names of what may differ between Heat's views and Stoker's."""
ADDED = {"attempt", "claimed_time", "ready_time", "time", "stack_name"}
"""Names that only Stoker's views of events and resources have."""
NO_ID = ("AWS::AutoScaling::LaunchConfiguration", "AWS::EC2::SubnetRouteTableAssociation")
"""Types whose resources have no physical id in Heat."""
WITHOUT_IDS = ("launched", "vpc")
"""Stacks with such resources."""
ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+")


def plain(view: Json) -> Json:
    """A view without addresses of APIs, and without what may differ."""
    if isinstance(view, dict):
        return {key: plain(item) for key, item in view.items() if key not in ALLOWED}
    if isinstance(view, list):
        return [plain(item) for item in view]
    return ADDRESS.sub("", view) if isinstance(view, str) else view


def without_added(rows: list[Json], heat_rows: list[Json]) -> list[Json]:
    """Rows without what only Stoker shows."""
    names = {name for row in heat_rows for name in row}
    return [
        {key: value for key, value in plain(row).items() if key in names or key not in ADDED} for row in rows
    ]


def test_the_import_writes_nothing_into_the_cloud_and_finds_no_difference(heat: Moved) -> None:
    assert heat.written == []
    assert heat.reports.moved["counts"] == {"moved": len(STACKS)}
    differing = {entry["name"] for entry in heat.reports.moved["stacks"] if entry["differences"]}
    assert differing == set(FAILED)
    assert [entry["notes"] for entry in heat.reports.moved["stacks"] if entry["notes"]] == []
    assert SECRET not in json.dumps(heat.reports.moved)


def test_users_read_while_stacks_move_and_change_nothing_before_the_switch(heat: Moved) -> None:
    # What is no stack is refused by 400, wherever it arrives.
    assert heat.answers == {"frozen": (200, 503), "stoker": (200, 400)}
    assert heat.reports.dry_run["counts"] == {"moves": len(STACKS)}


def test_by_the_api_all_stacks_move_but_those_whose_update_has_failed(heat: Moved) -> None:
    stays = {entry["name"] for entry in heat.reports.by_api["stacks"] if entry["disposition"] == "stays"}
    assert stays == {"half", "half_tree"}
    differing = {entry["name"] for entry in heat.reports.by_api["stacks"] if entry["differences"]}
    assert differing == {"failed"}
    assert SECRET not in json.dumps(heat.reports.by_api)


@pytest.mark.parametrize("name", STACKS)
def test_stoker_shows_a_stack_as_heat_did(heat: Moved, name: str) -> None:
    before = heat.before[name]
    now = heat.after[name]
    # Heat shows no id of some types, and an alias for the type of launched servers.
    if name in WITHOUT_IDS:
        for view in (before, now):
            view["resources"] = [row for row in view["resources"] if not is_launched(row)]
    assert {key: plain(now["stack"])[key] for key in plain(before["stack"])} == plain(before["stack"])
    now["events"] = [
        event for event in now["events"] if not event["resource_status_reason"].startswith(IMPORTED)
    ]
    for kind in ("resources", "events"):
        assert without_added(now[kind], before[kind]) == without_added(before[kind], before[kind])


def is_launched(row: Json) -> bool:
    return row["resource_type"] in ("OS::Heat::ScaledResource", "AWS::EC2::Instance", *NO_ID)


def test_moved_stacks_live_on_and_leave_nothing_in_the_cloud(heat: Moved) -> None:
    _updates_without_change_change_nothing(heat)
    _checks_find_everything(heat)
    _signals_by_old_addresses_arrive(heat)
    _guests_read_by_old_keys(heat)
    _agents_apply_what_changes(heat)
    _updates_change(heat)
    _deletions_leave_nothing(heat)


def _updates_without_change_change_nothing(heat: Moved) -> None:
    earlier = writes(heat.cloud, heat.project)
    names = [name for name in STACKS if name not in (*FAILED, *SUSPENDED)]
    before = {name: _physical_ids(heat, name) for name in names}
    for name in names:
        heat.stoker.change("PATCH", heat.paths[name], {})
    statuses = heat.stoker.settled([heat.paths[name] for name in names])
    assert set(statuses.values()) == {"UPDATE_COMPLETE"}, statuses
    assert {name: _physical_ids(heat, name) for name in names} == before
    assert writes(heat.cloud, heat.project) == earlier


def _physical_ids(heat: Moved, name: str) -> list[tuple[str, str]]:
    rows = heat.stoker.resources(heat.paths[name])
    return sorted((row["resource_name"], row["physical_resource_id"]) for row in rows)


def _checks_find_everything(heat: Moved) -> None:
    paths = [heat.paths[name] for name in STACKS if name not in (*FAILED, *SUSPENDED)]
    for path in paths:
        heat.stoker.change("POST", f"{path}/actions", {"check": None})
    statuses = heat.stoker.settled(paths)
    assert set(statuses.values()) == {"CHECK_COMPLETE"}, statuses


def _signals_by_old_addresses_arrive(heat: Moved) -> None:
    outputs = {name: heat.before[name]["stack"]["outputs"] for name in ("scale", "wait")}
    url = outputs["scale"]["url"]["output_value"]
    assert heat.send("POST", url).status_code == 200
    wait_for(lambda: _output(heat, "scale", "n") == 3, 120.0)
    # The one who holds the address of a handle, by a signature or by a token of its account.
    signed = json.loads(outputs["wait"]["signed"]["output_value"])["alarm_url"]
    signal = {"status": "SUCCESS", "data": "x", "id": "late", "reason": "r"}
    assert heat.send("PUT", signed, json=signal).status_code == 200
    assert heat.send("PUT", signed.replace("Signature=", "Signature=x"), json=signal).status_code == 403
    endpoint = outputs["wait"]["endpoint"]["output_value"]
    headers = {"X-Auth-Token": outputs["wait"]["token"]["output_value"]}
    assert heat.send("POST", endpoint, json=signal, headers=headers).status_code == 200
    for name in ("h", "h2"):
        metadata = heat.stoker.get(f"{heat.paths['wait']}/resources/{name}/metadata")["metadata"]
        assert metadata["late"]["status"] == "SUCCESS"
    other = endpoint.replace("/resources/h/signal", "/resources/h2/metadata")
    assert heat.send("GET", other, headers=headers).status_code == 404


def _output(heat: Moved, stack: str, name: str) -> Json:
    outputs = {item["output_key"]: item for item in heat.stoker.stack(heat.paths[stack])["outputs"]}
    return outputs[name]["output_value"]


def _guests_read_by_old_keys(heat: Moved) -> None:
    access = heat.before["soft"]["stack"]["outputs"]["occ"]["output_value"]["cfn"]
    query = {"Action": "DescribeStackResource", "StackName": "soft", "LogicalResourceId": "server"}
    response = _signed(heat, access, {**query, "ContentType": "JSON"})
    assert response.status_code == 200, response.text
    detail = response.json()["DescribeStackResourceResponse"]["DescribeStackResourceResult"]
    metadata = json.loads(json.dumps(detail["StackResourceDetail"]["Metadata"]))
    metadata = json.loads(metadata) if isinstance(metadata, str) else metadata
    assert [item["config"] for item in metadata["deployments"]] == ["echo $x"]
    assert _signed(heat, {**access, "secret_access_key": "wrong"}, query).status_code == 403


def _signed(heat: Moved, access: Json, query: Json) -> requests.Response:
    """A request as os-collect-config signs it."""
    url = urllib.parse.urlsplit(access["metadata_url"])
    signed = {"SignatureMethod": "HmacSHA256", "SignatureVersion": "2", **query}
    signed["AWSAccessKeyId"] = access["access_key_id"]
    pairs = "&".join(
        f"{key}={urllib.parse.quote(value, safe='-_~')}" for key, value in sorted(signed.items())
    )
    text = "\n".join(["GET", url.netloc, url.path, pairs]).encode()
    digest = hmac.new(access["secret_access_key"].encode(), text, hashlib.sha256).digest()
    signed["Signature"] = base64.b64encode(digest).decode()
    return heat.send("GET", access["metadata_url"], params=signed)


def _agents_apply_what_changes(heat: Moved) -> None:
    """os-collect-config polls at Heat's address, which leads to Stoker now."""
    assert _output(heat, "agents", "said") == "CREATE one\n"
    old = urllib.parse.urlsplit(heat.heat.cfn)
    new = urllib.parse.urlsplit(heat.stoker.root)
    relay = SilentProxy((str(new.hostname), new.port or 0), port=old.port or 0)
    try:
        heat.stoker.change("PATCH", heat.paths["agents"], {"parameters": {"word": "two"}})
        wait_for(lambda: deployment_status(heat.stoker, heat.paths["agents"]) == "IN_PROGRESS", 120.0)
        story = heat.guest.run()
        path = heat.paths["agents"]
        assert heat.stoker.settled([path]) == {path: "UPDATE_COMPLETE"}, story
    finally:
        relay.close()
    assert _output(heat, "agents", "said") == "UPDATE two\n"


def _updates_change(heat: Moved) -> None:
    heat.stoker.change("POST", f"{heat.paths['asleep']}/actions", {"resume": None})
    heat.stoker.change("PATCH", heat.paths["group"], {"parameters": {"count": 4}})
    flat = heat.stoker.get(f"{heat.paths['flat']}/template")
    heat.stoker.change("PATCH", heat.paths["half"], {"template": flat})
    names = ("asleep", "group", "half")
    statuses = heat.stoker.settled([heat.paths[name] for name in names])
    assert set(statuses.values()) == {"RESUME_COMPLETE", "UPDATE_COMPLETE"}, statuses
    assert len(_output(heat, "group", "vals")) == 4
    before = heat.before["group"]["stack"]["outputs"]["vals"]["output_value"]
    assert _output(heat, "group", "vals")[:3] == before


def _deletions_leave_nothing(heat: Moved) -> None:
    [snapshot] = heat.stoker.get(f"{heat.paths['snap']}/snapshots")["snapshots"]
    assert (snapshot["name"], snapshot["status"]) == ("s1", "COMPLETE")
    for path in heat.paths.values():
        heat.stoker.change("DELETE", path)
    statuses = heat.stoker.settled(heat.paths.values())
    assert set(statuses.values()) == {"DELETE_COMPLETE"}, statuses
    assert heat.project.leftovers() == {}
