"""The import of stacks by Heat's API: what Heat answers becomes Stoker's rows."""

import contextlib
import http.server
import itertools
import pathlib
import threading
import typing
import uuid
from collections.abc import Iterator

import pytest
import yaml
from harness.heat_answers import PROJECT, Answered, AnsweredStack, ScriptedHeat
from harness.heat_installation import VALUE, Installation, installed, only, template
from harness.programs import BIN, run
from keystoneauth1.session import Session
from keystoneauth1.token_endpoint import Token
from stoker.cli.wiring import heat_api
from stoker.cli.wiring.heat_api import NoCredentials, getter, project_root
from stoker.cli.wiring.heat_import import open_import
from stoker.db import events, imported_keys
from stoker.db.ids import StackId
from stoker.features.moves.heat.report import Disposition
from stoker.features.moves.heat.selection import Selection, WrongSelection
from stoker.features.moves.inward.api_answers import in_order, path_of_link, referred_attributes
from stoker.features.moves.inward.api_reader import LONGEST, LOST, NO_EXPORT, HeatApi, HeatRefusal
from stoker.features.moves.inward.run import Options

Json = typing.Any
CREATED = 1_700_000_000.0
HIDDEN = {"secret": {"type": "string", "hidden": True}}
RANDOM = {"type": "OS::Heat::RandomString", "properties": {"length": 4}}


def value_stack(name: str = "plain", **fields: Json) -> AnsweredStack:
    body = template({"v": VALUE})
    return AnsweredStack(name, body, [Answered("v", "OS::Heat::Value", f"{name}-v")], **fields)


def hidden_stack(name: str = "hidden") -> AnsweredStack:
    value = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "secret"}}}
    return AnsweredStack(
        name,
        template({"v": value}, parameters=HIDDEN),
        [Answered("v", "OS::Heat::Value", f"{name}-v")],
        environment={"parameters": {"secret": "hush-hush"}},
        hidden=["secret"],
    )


@pytest.fixture
def installation(tmp_path: pathlib.Path) -> Iterator[Installation]:
    with installed(tmp_path) as installation:
        yield installation


def test_a_stack_keeps_its_ids_its_facts_and_its_events(installation: Installation) -> None:
    moved = value_stack()
    report = installation.run_by_api(ScriptedHeat(moved))
    entry = only(report)
    assert (entry.disposition, entry.differences, entry.notes) == (Disposition.MOVED, [], [])
    assert report.notes == [LOST]
    stack = installation.stack(moved.id)
    facts = (stack.name, stack.project_id, stack.owner, stack.action, stack.status)
    assert facts == ("plain", PROJECT, "alice", "CREATE", "COMPLETE")
    assert (stack.created_at, stack.timeout_mins, set(stack.tags)) == (CREATED, 17, {"a", "b"})
    row = installation.rows(moved.id)["v"]
    assert (row.physical_id, row.properties, row.attributes) == ("plain-v", {"value": "v"}, {"value": "v"})
    query = events.EventQuery(StackId(moved.id))
    [(event, _)] = installation.database.read(lambda conn: events.list_events(conn, query))
    assert (event.resource_name, event.resource_type, event.at) == ("v", "OS::Heat::Value", CREATED)


def test_a_dry_run_stores_nothing_and_a_second_run_skips_what_is_there(installation: Installation) -> None:
    heat = ScriptedHeat(value_stack("one"), value_stack("two"))
    assert installation.run_by_api(heat, dry_run=True).counts() == {"moves": 2}
    assert installation.run_by_api(heat, names=["two"]).counts() == {"moved": 1}
    heat.requests.clear()
    assert installation.run_by_api(heat).counts() == {"moved": 1, "present": 1}
    assert not any(heat.stacks[1].id in path for path in heat.requests)
    assert installation.run_by_api(heat).counts() == {"present": 2}


def test_an_export_has_hidden_values_and_they_are_sealed(installation: Installation) -> None:
    stack = hidden_stack()
    entry = only(installation.run_by_api(ScriptedHeat(stack)))
    assert (entry.disposition, entry.differences) == (Disposition.MOVED, [])
    assert "hush-hush" not in str(installation.stack(stack.id))
    assert "hush-hush" not in str(installation.rows(stack.id))


def test_without_an_export_hidden_values_are_requested_by_name(installation: Installation) -> None:
    heat = ScriptedHeat(hidden_stack())
    heat.exports = False
    report = installation.run_by_api(heat)
    assert only(report).disposition == Disposition.STAYS
    assert "the value of secret: give it by --environment FILE" in only(report).reasons[0]
    assert report.notes == [LOST, NO_EXPORT]
    wrong = only(installation.run_by_api(heat, {"secret": "hush-hush", "word": "x"}))
    assert wrong.reasons[0].startswith("word: Heat shows that value, or has no such parameter")
    assert only(installation.run_by_api(heat, {"secret": "hush-hush"})).disposition == Disposition.MOVED


def test_nested_stacks_keep_their_ids(installation: Installation) -> None:
    inner = template({"r": RANDOM}, outputs={"o": {"value": {"get_attr": ["r", "value"]}}})
    random = Answered("r", "OS::Heat::RandomString", "random-1", data={"value": "abcd"})
    child = AnsweredStack("outer-one", inner, [random])
    outer = AnsweredStack(
        "outer",
        template({"one": {"type": "child.yaml"}}, outputs={"o": {"value": {"get_attr": ["one", "o"]}}}),
        [Answered("one", "child.yaml", child=child)],
        files={"child.yaml": yaml.safe_dump(inner)},
    )
    child.fields = {"parent": outer.id}
    entry = only(installation.run_by_api(ScriptedHeat(outer)))
    assert (entry.disposition, entry.differences, entry.stacks) == (Disposition.MOVED, [], 2)
    stack = installation.stack(child.id)
    assert (stack.parent_id, stack.name) == (outer.id, "outer-one")
    assert "abcd" not in str(installation.rows(child.id))


def test_members_of_a_group_get_the_hidden_values_that_make_all_their_properties(
    installation: Installation,
) -> None:
    value = {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "secret"}}}
    leaf = template({"v": value}, parameters=HIDDEN)
    body = {"type": "leaf.yaml", "properties": {"secret": "hush-hush"}}
    member = AnsweredStack("group-0", leaf, [Answered("v", "OS::Heat::Value", "group-0-v")])
    group = AnsweredStack("group", template({"0": body}), [Answered("0", "leaf.yaml", child=member)])
    of_member = {"type": "leaf.yaml", "properties": {"secret": {"get_param": "secret"}}}
    properties = {"count": 1, "resource_def": of_member}
    outer = AnsweredStack(
        "outer",
        template({"g": {"type": "OS::Heat::ResourceGroup", "properties": properties}}, parameters=HIDDEN),
        [Answered("g", "OS::Heat::ResourceGroup", child=group)],
        environment={"parameters": {"secret": "hush-hush"}},
        hidden=["secret"],
        files={"leaf.yaml": yaml.safe_dump(leaf)},
    )
    group.fields, member.fields = {"parent": outer.id}, {"parent": group.id}
    entry = only(installation.run_by_api(ScriptedHeat(outer)))
    assert (entry.disposition, entry.differences, entry.stacks) == (Disposition.MOVED, [], 3)
    assert "hush-hush" not in str(installation.rows(group.id))


@pytest.mark.parametrize("exports", [True, False])
def test_values_that_types_have_stored_come_from_the_export_or_from_attributes(
    installation: Installation, *, exports: bool
) -> None:
    body = template({"r": RANDOM}, outputs={"o": {"value": {"get_attr": ["r", "value"]}}})
    random = Answered("r", "OS::Heat::RandomString", "random-1", attributes={"value": "abcd"})
    random.data = {"value": "abcd"}
    stack = AnsweredStack("random", body, [random])
    heat = ScriptedHeat(stack)
    heat.exports = exports
    assert only(installation.run_by_api(heat)).disposition == Disposition.MOVED
    assert installation.rows(stack.id)["r"].data


def test_addresses_stay_where_heat_exports_keys_and_are_named_where_it_does_not(
    installation: Installation,
) -> None:
    policy = {"adjustment_type": "change_in_capacity", "auto_scaling_group_id": "g", "scaling_adjustment": 1}
    body = template({"p": {"type": "OS::Heat::ScalingPolicy", "properties": policy}})
    keys = {"access_key": "key-of-alice", "secret_key": "hush-hush"}
    heats = {}
    for exports in (True, False):
        resource = Answered("p", "OS::Heat::ScalingPolicy", "scaled-p", data=keys if exports else {})
        heats[exports] = ScriptedHeat(AnsweredStack(f"scaled-{exports}", body, [resource]))
        heats[exports].exports = exports
    assert only(installation.run_by_api(heats[False])).notes == [
        "p: its addresses for signals are new ones: give them to those that signal"
    ]
    assert only(installation.run_by_api(heats[True])).notes == []
    assert installation.database.read(lambda conn: imported_keys.find(conn, "key-of-alice"))


def test_attributes_are_requested_where_the_template_refers_to_them(installation: Installation) -> None:
    body = template(
        {"net": {"type": "OS::Neutron::Net"}, "other": {"type": "OS::Neutron::Net"}},
        outputs={"o": {"value": {"get_attr": ["net", "mtu"]}}},
    )
    nets = [
        Answered(name, "OS::Neutron::Net", f"id-{name}", attributes={"mtu": 1450})
        for name in ("net", "other")
    ]
    stack = AnsweredStack("nets", body, nets)
    heat = ScriptedHeat(stack)
    assert only(installation.run_by_api(heat)).differences == []
    assert [path for path in heat.requests if "with_attr" in path] == [
        f"{stack.path}/resources/net?with_attr=mtu"
    ]
    assert installation.rows(stack.id)["net"].attributes == {"mtu": 1450}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("UPDATE_IN_PROGRESS", "let Heat finish"),
        ("UPDATE_FAILED", "update it in Heat until that succeeds, or move it by --database"),
    ],
)
def test_a_stack_whose_goal_the_api_does_not_show_stays(
    installation: Installation, status: str, words: str
) -> None:
    entry = only(installation.run_by_api(ScriptedHeat(value_stack(fields={"stack_status": status}))))
    assert entry.disposition == Disposition.STAYS
    assert words in entry.reasons[0]


def test_a_stack_that_changes_while_it_is_read_stays(installation: Installation) -> None:
    stack = value_stack()
    heat = ScriptedHeat(stack)

    def get(path: str) -> Json:
        answer = heat.get(path)
        if path.endswith("/snapshots"):
            stack.fields = {"updated_time": "2026-01-01T00:00:00Z"}
        return answer

    with open_import(installation.conf, HeatApi(get, PROJECT), lambda done, total: None) as run:
        entry = only(run.run(Options(Selection())))
    assert entry.reasons == ["it was changed while it was read: run this again"]


def test_a_stack_that_takes_heat_too_long_to_show_stays(installation: Installation) -> None:
    heat = ScriptedHeat(value_stack("slow"), value_stack("quick"))
    seconds = itertools.count()

    def get(path: str) -> Json:
        if "/slow/" in path:
            for _ in range(int(LONGEST) // 3):
                next(seconds)
        return heat.get(path)

    api = HeatApi(get, PROJECT, monotonic=lambda: float(next(seconds)))
    with open_import(installation.conf, api, lambda done, total: None) as run:
        report = run.run(Options(Selection()))
    assert report.counts() == {"moved": 1, "stays": 1}
    assert report.stacks[0].reasons == ["Heat has not shown the whole stack within 3600 s"]


def test_what_heat_refuses_is_said_and_other_stacks_move(installation: Installation) -> None:
    heat = ScriptedHeat(value_stack("one"), value_stack("two"))
    heat.refused[f"{heat.stacks[0].path}/events"] = 403
    report = installation.run_by_api(heat)
    assert report.counts() == {"moved": 1, "stays": 1}
    assert report.stacks[0].reasons[0].startswith("Heat answers 403 to GET /stacks/one/")


def test_snapshots_that_stay_are_named(installation: Installation) -> None:
    entry = only(installation.run_by_api(ScriptedHeat(value_stack(snapshots=["before", "after"]))))
    assert entry.notes == ["its snapshots are not moved, and their copies stay in the cloud: before, after"]


def test_more_stacks_than_one_page_are_read(installation: Installation) -> None:
    heat = ScriptedHeat(*(value_stack(f"s{number}") for number in range(101)))
    assert HeatApi(heat.get, PROJECT).count(Selection()) == 101
    assert installation.run_by_api(heat, names=["s100"]).counts() == {"moved": 1}


def test_a_stack_that_does_not_exist_is_named() -> None:
    heat = HeatApi(ScriptedHeat(value_stack()).get, PROJECT)
    with pytest.raises(WrongSelection, match="no root stack other"):
        heat.resolve(Selection(stacks=["plain", "other"]))


def test_software_configs_and_deployments_keep_their_ids(installation: Installation) -> None:
    ids = {name: str(uuid.uuid4()) for name in ("config", "derived", "deployment")}
    body = template(
        {
            "c": {"type": "OS::Heat::SoftwareConfig", "properties": {"config": "echo"}},
            "d": {
                "type": "OS::Heat::SoftwareDeployment",
                "properties": {
                    "config": {"get_resource": "c"},
                    "server": "server-1",
                    "signal_transport": "NO_SIGNAL",
                },
            },
        },
        outputs={"y": {"value": {"get_attr": ["d", "y"]}}},
    )
    rows = [
        Answered("c", "OS::Heat::SoftwareConfig", ids["config"]),
        Answered("d", "OS::Heat::SoftwareDeployment", ids["deployment"]),
    ]
    stack = AnsweredStack("soft", body, rows)
    heat = ScriptedHeat(stack)
    config = {"name": "n", "group": "script", "config": "echo", "inputs": [], "outputs": [], "options": {}}
    heat.configs = [{"id": ids[name], **config} for name in ("config", "derived")]
    deployment = {"id": ids["deployment"], "config_id": ids["derived"], "server_id": "server-1"}
    heat.deployments = [{**deployment, "status": "COMPLETE", "output_values": {"y": "1"}}]
    report = installation.run_by_api(heat)
    assert only(report).differences == []
    assert (installation.rows(stack.id)["d"].attributes or {})["y"] == "1"
    assert (report.configs, report.deployments) == (0, 0)


def test_references_to_attributes_are_found_in_both_languages() -> None:
    body = {
        "a": {"list_join": [",", [{"get_attr": ["x", "one", 0]}, {"get_attr": ["x"]}]]},
        "b": [{"Fn::GetAtt": ["y", "Two"]}, {"Fn::GetAtt": "y.Three.Four"}],
    }
    assert referred_attributes(body) == {"x": {"one"}, "y": {"Two", "Three.Four"}}


def test_members_of_one_second_are_in_the_order_of_their_numbers() -> None:
    rows = [{"resource_name": name, "creation_time": "t"} for name in ("10", "9", "a2", "a10")]
    assert [row["resource_name"] for row in in_order(rows)] == ["9", "10", "a2", "a10"]


def test_a_link_leads_to_a_stack() -> None:
    links = [{"rel": "nested", "href": "https://h/heat/v1/p/stacks/a%2Fb/123/resources/r"}]
    path = path_of_link(links, "nested")
    assert (str(path), path and path.id) == ("/stacks/a%2Fb/123", "123")
    assert path_of_link(links, "stack") is None


@pytest.mark.parametrize(
    ("address", "project", "root"),
    [
        ("http://h:8004/v1", "p", "http://h:8004/v1/p"),
        ("https://h/orchestration/v1/p/", "p", "https://h/orchestration/v1/p"),
        ("http://h/v1/named", None, "http://h/v1/named"),
    ],
)
def test_the_address_of_the_api_may_name_the_project(address: str, project: str | None, root: str) -> None:
    assert project_root(address, project)[0] == root


@pytest.mark.parametrize(
    ("address", "project", "words"),
    [
        ("h:8004", "p", "must be such as"),
        ("http://h:8004", "p", "must be such as"),
        ("http://h/v1/other", "p", "the credentials are for p"),
        ("http://h/v1", None, "name a project"),
    ],
)
def test_a_wrong_address_is_refused(address: str, project: str | None, words: str) -> None:
    with pytest.raises(NoCredentials, match=words):
        project_root(address, project)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--claim"], "--claim is for --database"),
        (["--include-deleted"], "--include-deleted is for --database"),
        (["--parameter", "a=b"], "name it by --stack"),
        (["--parameter", "a", "--stack", "s"], "--parameter must be NAME=VALUE"),
        (["--environment", "{directory}/wrong.yaml", "--stack", "s"], "it must have parameters"),
        (["--project", "other"], "--project other: the credentials are for demo"),
        ([], "--heat: Heat does not answer GET /stacks"),
    ],
)
def test_wrong_options_are_refused(
    installation: Installation, tmp_path: pathlib.Path, arguments: list[str], words: str
) -> None:
    (tmp_path / "wrong.yaml").write_text("resource_registry: {}\n")
    options = [text.format(directory=tmp_path) for text in arguments]
    address = "http://127.0.0.1:9/v1/demo"
    environment = {"OS_AUTH_TYPE": "none", "OS_ENDPOINT": address, "PATH": ""}
    command = [BIN / "stoker-manage", "--config-file", installation.config, "import-heat", "--heat", address]
    done = run([*command, *options], env=environment)
    assert done.returncode == 1, done
    assert words in done.stderr


class Redirecting(http.server.BaseHTTPRequestHandler):
    """Answers of a Heat that leads elsewhere, or has no end."""

    tokens: typing.ClassVar[list[tuple[str, str | None]]] = []
    elsewhere = ""
    over = threading.Event()

    def do_GET(self) -> None:  # noqa: N802
        self.tokens.append((self.path, self.headers["X-Auth-Token"]))
        if self.path.endswith("/moved"):
            self.send_response(302)
            self.send_header("Location", f"{self.elsewhere}/stolen")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        with contextlib.suppress(OSError):
            while self.path.endswith("/drip") and not self.over.wait(0.05):
                self.wfile.write(b" ")
            self.wfile.write(b"[" * 5000)

    def log_message(self, *_: object) -> None:
        """Be silent."""


@pytest.fixture
def sites() -> Iterator[tuple[str, str]]:
    """The addresses of two web servers, of which the first one leads to the second one."""
    Redirecting.tokens.clear()
    Redirecting.over.clear()
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirecting) for _ in range(2)]
    first, second = (f"http://127.0.0.1:{server.server_address[1]}" for server in servers)
    Redirecting.elsewhere = second
    for server in servers:
        threading.Thread(target=server.serve_forever, daemon=True).start()
    yield first, second
    Redirecting.over.set()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_the_operators_token_follows_no_redirect(sites: tuple[str, str]) -> None:
    get = getter(Session(auth=Token(sites[0], "the-token")), f"{sites[0]}/v1/p")
    with pytest.raises(HeatRefusal, match="Heat answers 302 to GET /moved"):
        get("/moved")
    assert Redirecting.tokens == [("/v1/p/moved", "the-token")]


@pytest.mark.parametrize(("path", "words"), [("/large", "larger than 4000 bytes"), ("/drip", "within 0.3 s")])
def test_an_answer_without_an_end_is_not_read(
    sites: tuple[str, str], monkeypatch: pytest.MonkeyPatch, path: str, words: str
) -> None:
    monkeypatch.setattr(heat_api, "MOST_BYTES", 4000)
    monkeypatch.setattr(heat_api, "LONGEST", 0.3 if path == "/drip" else 60.0)
    get = getter(Session(auth=Token(sites[0], "t")), f"{sites[0]}/v1/p")
    with pytest.raises(HeatRefusal, match=words):
        get(path)


def test_an_answer_of_brackets_is_no_json(sites: tuple[str, str]) -> None:
    get = getter(Session(auth=Token(sites[0], "t")), f"{sites[0]}/v1/p")
    with pytest.raises(HeatRefusal, match="answers no JSON"):
        get("/deep")


def test_a_list_whose_pages_lead_in_a_circle_is_refused() -> None:
    page = {"stacks": [{"id": f"id-{number}", "stack_name": "s"} for number in range(100)]}
    with pytest.raises(HeatRefusal, match="a page of its list follows itself"):
        HeatApi(lambda path: page, PROJECT).count(Selection())


def test_stacks_that_lead_in_a_circle_stay(installation: Installation) -> None:
    child = value_stack("child")
    root = AnsweredStack(
        "root", template({"c": {"type": "child.yaml"}}), [Answered("c", "child.yaml", child=child)]
    )

    class Circle(ScriptedHeat):
        def get(self, path: str) -> Json:
            answer = super().get(path)
            for row in answer.get("resources", ()) if "/resources?" in path else ():
                if row["resource_name"] == "v":
                    row["links"] = [*row["links"], {"rel": "nested", "href": f"http://h/v1/p{root.path}"}]
            return answer

    [entry] = [item for item in installation.run_by_api(Circle(root)).stacks if item.name == "root"]
    assert entry.disposition == Disposition.STAYS
    assert "have no end" in entry.reasons[0]


ODD = (None, [], {}, "text", 5, ["a"], {"a": 1}, [None])


@pytest.mark.parametrize("ending", ["", "resources", "export", "events", "snapshots"])
def test_an_answer_of_an_odd_type_keeps_its_own_stack_only(installation: Installation, ending: str) -> None:
    """Each part of an answer is once each odd value; no run ends, and the sound stack moves in each."""

    class Odd(ScriptedHeat):
        part: tuple[str, Json] = ("", None)

        def get(self, path: str) -> Json:
            answer = super().get(path)
            base = path.partition("?")[0]
            if self.stacks[0].id not in base or base.rpartition("/")[2] != (ending or self.stacks[0].id):
                return answer
            name, value = self.part
            if name == "":
                return value
            body = answer["stack"] if ending == "" else answer
            items = body[ending] if isinstance(body.get(ending), list) else [body]
            for item in items:
                if name in item:
                    item[name] = value
            return answer

    sound = value_stack("sound")
    heat = Odd(value_stack("odd"), sound)
    names = {
        "": ["", "id", "stack_name", "stack_status", "creation_time", "tags", "timeout_mins", "stack_owner"],
        "resources": [
            "",
            "resource_name",
            "resource_status",
            "links",
            "physical_resource_id",
            "creation_time",
        ],
        "export": ["", "template", "environment", "files", "resources"],
        "events": ["", "id", "event_time", "resource_status", "resource_name"],
        "snapshots": [""],
    }
    for name in names[ending]:
        for value in ODD:
            heat.part = (name, value)
            report = {entry.id: entry for entry in installation.run_by_api(heat, dry_run=True).stacks}
            assert report[sound.id].disposition == Disposition.MOVES
            odd = report[heat.stacks[0].id]
            assert (odd.disposition == Disposition.STAYS) == bool(odd.reasons)
