"""The documentation builds without warnings, names all there is, and its examples work unchanged."""

import html
import importlib
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys
import typing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
import yaml
from client.serving import Service
from harness import plugin_page
from harness.browser import Browser
from harness.tested_types import WITHOUT_EXAMPLE, evidence
from harness.waiting import wait_for
from stoker.cli.config import about, options
from stoker.cli.features import FEATURES
from stoker.cli.programs import manage
from stoker.cli.wiring.metrics import metrics_of
from stoker.cli.wiring.policy import list_rules
from stoker.conductor.worker import claimed
from stoker.db import stack_states
from stoker.db.notifications import EventKind
from stoker.db.schema import tables
from stoker.db.work import transitions
from stoker.resources.contract.plugin import ResourceType
from stoker.resources.openstack.declared import DeclaredThing
from stoker.resources.type_folders import types_in

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
DOC = ROOT / "doc"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SIGNAL = {"status": "SUCCESS", "data": "all is well"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The folder with the pages."""
    target = tmp_path_factory.mktemp("doc") / "html"
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "html", DOC, target]
    done = subprocess.run(command, capture_output=True, text=True, timeout=800, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return target


@pytest.fixture(scope="module")
def pages(site: pathlib.Path) -> dict[str, str]:
    """The text of each page, without what is markup."""
    return {
        str(path.relative_to(site).with_suffix("")): _text(path.read_text()) for path in site.rglob("*.html")
    }


def _text(page: str) -> str:
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", "", page)))


def words(text: str) -> set[str]:
    """Names, also those with dots, dashes and colons."""
    return set(re.findall(r"[A-Za-z0-9_](?:[\w.:-]*\w)?", text))


@pytest.mark.full
def test_every_document_is_a_page(pages: dict[str, str]) -> None:
    sources = {
        str(path.relative_to(DOC).with_suffix("")) for path in [*DOC.rglob("*.md"), *DOC.rglob("*.rst")]
    }
    assert sources <= set(pages)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


FRONT = "index.html"
TYPE_PAGE = "reference/types/nova/os-nova-server.html"


def address(site: pathlib.Path, page: str) -> str:
    return f"file://{site}/{page}"


@pytest.mark.full
@pytest.mark.needs("chromium")
@pytest.mark.parametrize(
    ("words", "title"),
    [
        ("superseded", "Glossary"),
        ("503", "Troubleshooting"),
        ("RequestLimitExceeded", "Troubleshooting"),
        ("task_losses", "Options"),
        ("stoker_clock_ahead", "Metrics"),
        ("OS::Nova::Server", "OS::Nova::Server"),
    ],
)
def test_the_search_finds_words_numbers_and_names_without_a_network(
    site: pathlib.Path, chromium: Browser, words: str, title: str
) -> None:
    page = chromium.page()
    addresses: list[str] = []
    page.on("request", lambda request: addresses.append(request.url))
    page.goto(address(site, "install.html"))
    page.fill("input[name=q]", words)
    page.press("input[name=q]", "Enter")
    page.get_by_text("Search finished").wait_for()
    results = page.locator("ul.search li a").all_inner_texts()
    assert [result for result in results if result.split(" > ")[0] == title], results
    assert [address for address in addresses if not address.startswith(("file:", "data:"))] == []
    # Results have excerpts on a server only: a browser reads no other file of a page that is a file.
    assert [trouble for trouble in chromium.close_pages() if "fetch" not in trouble] == []


@pytest.mark.full
@pytest.mark.needs("chromium")
def test_no_page_scrolls_sideways_on_a_phone(site: pathlib.Path, chromium: Browser) -> None:
    page = chromium.page(width=390, height=844)
    wide = []
    for path in sorted(site.rglob("*.html")):
        page.goto(f"file://{path}")
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(str(path.relative_to(site)))
    assert wide == []
    assert chromium.close_pages() == []


@pytest.mark.full
@pytest.mark.needs("chromium")
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_page_is_drawn_in_the_readers_scheme(site: pathlib.Path, chromium: Browser, dark: bool) -> None:
    page = chromium.page(width=1440, dark=dark)
    for name in (FRONT, TYPE_PAGE, "handbook.html"):
        page.goto(address(site, name))
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (max(map(int, re.findall(r"\d+", background)[:3])) < 64) is dark, (name, background)
        fonts = page.evaluate("getComputedStyle(document.body).fontFamily")
        assert fonts.split(", ")[-1] != "serif", fonts
        assert "sans-serif" in fonts
        assert page.get_by_text("On this page").is_visible()
        assert importlib.metadata.version("stoker") in page.inner_text(".site-version")
    page.goto(address(site, FRONT))
    pictures = page.locator("article img[src*=console-graph]")
    shown = [picture.get_attribute("src") for picture in pictures.all() if picture.is_visible()]
    assert shown == [f"_images/console-graph{'-dark' if dark else ''}.webp"]
    assert chromium.close_pages() == []


@pytest.mark.full
def test_the_front_page_leads_everywhere(site: pathlib.Path) -> None:
    text = (site / FRONT).read_text()
    doors = text.partition('<ul class="doors')[2].partition("<h2")[0]
    assert doors.count("<strong>") == 4
    for page in ("tutorial", "day1", "plugins", "development", "handbook", "leave_heat"):
        assert f'href="{page}.html"' in doors, page


def test_the_front_page_has_the_numbers_of_the_measurements() -> None:
    """A page with a measurement has both the number and the command."""
    table = (
        (DOC / "index.md").read_text().partition("## What it does better")[2].partition("\n\nThe times")[0]
    )
    measured = (DOC / "performance.md").read_text()
    pages = measured + (DOC / "operation.md").read_text()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[4:]]
    assert len(rows) >= 6
    for name, heat, stoker, command in rows:
        assert command in ("the same", "[troubleshooting](handbook.md)") or command.strip("`") in pages, name
        for number in re.findall(r"\d[\d,.]* (?:s|ms|resources/s)\b", f"{stoker} {heat}"):
            assert number.removesuffix(" resources/s") in pages, (name, number)


MOST_WORDS = 60_000
"""The most words of all documents; lower it when some are left out."""


def test_the_documents_do_not_grow() -> None:
    """Readers have as much time as before: a new text takes the place of one that is read less."""
    texts = [
        re.sub(r"^( *)```.*?^\1```$", "", page.read_text(), flags=re.DOTALL | re.M)
        for page in DOC.glob("*.md")
    ]
    count = sum(any(map(str.isalnum, word)) for text in texts for word in text.split())
    assert MOST_WORDS - 1500 < count <= MOST_WORDS


def test_every_document_that_a_help_text_names_exists() -> None:
    assert [path for path in about.DOCUMENTS if not (ROOT / path).is_file()] == []


def test_every_file_that_a_page_names_exists() -> None:
    pages = [ROOT / "README.md", *DOC.glob("*.md")]
    named = [
        (page.name, name)
        for page in pages
        for name in re.findall(r"`((?!acme)[a-z_.]+/(?:[\w.-]+/)*(?:[\w-]+\.\w+)?)`", page.read_text())
    ]
    assert len(named) > 50
    assert [(page, name) for page, name in named if not (ROOT / name).exists()] == []


def test_the_glossary_has_the_word_of_each_transition() -> None:
    table = (DOC / "glossary.md").read_text().partition("| Word | From | To |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    words = {word: (frozenset(sources.split(", ")), target) for word, sources, target in rows}
    assert words == {move.word: (frozenset(move.sources), move.target) for move in transitions.ALL}


def test_the_glossary_has_the_word_of_each_transition_of_a_stack() -> None:
    table = (
        (DOC / "glossary.md").read_text().partition("| Word | Who | From | To |\n")[2].partition("\n\n")[0]
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    actors = {word: set(row[1].split(", ")) for row in rows for word in row[0].split(", ")}
    assert actors == {move.word: set(move.actors) for move in stack_states.TRANSITIONS}


def test_the_architecture_has_the_states_of_a_claimed_task() -> None:
    page = (DOC / "architecture.md").read_text()
    table = page.partition("| state | meaning | event and next state |\n")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[1:]]
    states = {row[0]: dict(move.split(": ") for move in row[2].split("; ")) for row in rows}
    assert states == {
        state.value: {event.value: after.value for event, after in moves.items()}
        for state, moves in claimed.TRANSITIONS.items()
    }
    events = page.partition("| event | cause |\n")[2].partition("\n\n")[0].splitlines()[1:]
    assert {line.split("|")[1].strip() for line in events} == {event.value for event in claimed.ClaimEvent}


def test_the_architecture_has_every_table() -> None:
    page = (DOC / "architecture.md").read_text()
    section = page.partition("## What is stored\n")[2].partition("\n## ")[0]
    first = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    named = {name for cell in first for name in re.findall(r"`(\w+)`", cell)}
    assert set(tables.metadata.tables) <= named


def test_every_option_is_documented_with_its_meaning(pages: dict[str, str]) -> None:
    text = pages["reference/options"]
    for group, declared in options.GROUPS.items():
        for option in declared:
            assert option.dest in words(text), f"[{group}] {option.dest}"
            assert option.help.split("`")[0][:60].strip() in text, f"[{group}] {option.dest}"


def test_every_policy_rule_is_documented(pages: dict[str, str]) -> None:
    for rule in list_rules():
        assert f" {rule.name} " in pages["reference/policy"]


def test_every_command_is_documented(pages: dict[str, str]) -> None:
    text = pages["reference/commands"]
    scripts = importlib.metadata.distribution("stoker").entry_points.select(group="console_scripts")
    missing = [script.name for script in scripts if f"usage: {script.name} " not in text]
    missing += [name for name in manage.COMMANDS if f"usage: stoker-manage {name} " not in text]
    plugins = importlib.metadata.entry_points(group="openstack.orchestration.v1")
    commands = [point.name.replace("_", " ") for point in plugins if point.value.startswith("stoker.")]
    missing += [name for name in commands if f"usage: openstack {name} " not in text]
    assert commands
    assert not missing


def test_every_metric_is_documented(pages: dict[str, str]) -> None:
    text = pages["reference/metrics"]
    for metric in metrics_of(FEATURES):
        assert metric.name in words(text)
        assert metric.help in text


def test_every_kind_of_notification_is_documented() -> None:
    page = (DOC / "operation.md").read_text()
    for kind in EventKind:
        assert re.search(rf"`orchestration\.[\w.`, ]*{kind}\b", page), kind


def types_of_stoker() -> dict[str, tuple[str, type[ResourceType]]]:
    """By name the page and the class of each type that comes with Stoker."""
    points = importlib.metadata.entry_points(group="stoker.resource_types")
    own_points = [point for point in points if point.value.startswith("stoker.")]
    return {
        name: (point.name, declared)
        for point in own_points
        for name, declared in types_in(point.load()).items()
    }


TYPES = {name: entry for name, entry in types_of_stoker().items() if not entry[1].support_status.hidden}
HIDDEN = types_of_stoker().keys() - TYPES.keys()


def section(pages: dict[str, str], name: str) -> str:
    """The text of the page of a type, from its title to the end."""
    page = pages[f"reference/types/{TYPES[name][0]}/{name.replace('::', '-').lower()}"]
    return page[page.rindex(f"{name}¶") :]


def test_the_page_of_a_type_begins_with_an_example(pages: dict[str, str]) -> None:
    late = [
        name
        for name in TYPES
        if re.search(r"(\w[\w ]*)¶", section(pages, name).partition("¶")[2])[1].split(". ")[-1].split()[-1]
        != "Example"
    ]
    assert late == []


def test_every_type_is_documented_with_all_it_has(pages: dict[str, str], subtests: pytest.Subtests) -> None:
    for name in sorted(TYPES):
        with subtests.test(name):
            assert_has_all(pages, name)


def assert_has_all(pages: dict[str, str], name: str) -> None:
    declared = TYPES[name][1]
    part = section(pages, name)
    attributes = [key for key, item in declared.attributes_schema.items() if not item.support_status.hidden]
    for key in (*declared.properties_schema, *declared.update_policy_schema, *attributes):
        assert key in words(part) or key == "*", key
    for inner in (
        key
        for prop in declared.properties_schema.values()
        if isinstance(prop.schema, dict)
        for key in prop.schema
    ):
        assert inner in part, inner
    for item in declared.implied_dependencies:
        assert f"all {item.type} whose " in part
    assert f"{name} {declared.description.splitlines()[0]} " in pages["reference/types"]


def test_hidden_types_are_not_documented(pages: dict[str, str]) -> None:
    assert "OS::Glance::Image" in HIDDEN
    text = "".join(text for page, text in pages.items() if page.startswith("reference/types"))
    assert [name for name in HIDDEN if f"{name}¶" in text] == []


def test_a_type_of_a_service_is_documented_with_its_way_of_working(
    pages: dict[str, str], subtests: pytest.Subtests
) -> None:
    for name in sorted(name for name in TYPES if TYPES[name][1].service):
        with subtests.test(name):
            assert_has_way_of_working(pages, name)


def assert_has_way_of_working(pages: dict[str, str], name: str) -> None:
    declared = TYPES[name][1]
    part = section(pages, name)
    assert f" Service: {declared.service} " in part
    mark = getattr(declared, "mark", None)
    assert f" Mark: {mark.place if mark else declared.identity} ".replace("``", "") in part
    assert mark or declared.identity
    status = getattr(declared, "status", None)
    assert " Status: " in part or not (status or issubclass(declared, DeclaredThing))
    for value in status.pending if status else ():
        assert value in words(part.partition(" Status: ")[2])


def test_the_table_of_types_says_how_the_tests_try_each(pages: dict[str, str]) -> None:
    services = {name: declared.service for name, (_, declared) in TYPES.items() if declared.service}
    page = pages["reference/types"]
    count = r"\d+( of \d+)?"
    absent = [
        f"{name}: {how}"
        for name, how in evidence(services).items()
        if re.search(rf"\b{name} {services[name]} {count} {count} {how} (OS|AWS|How)\b", page) is None
    ]
    assert absent == []
    assert " OS::Neutron::NetworkGateway network 10 of 11 2 schema and calls " in page


def test_the_reference_documents_changes_and_old_names_of_a_type(pages: dict[str, str]) -> None:
    port = section(pages, "OS::Neutron::Port")
    server = section(pages, "OS::Nova::Server")
    assert " Old names: network_id of network, fixed_ips.*.subnet_id of subnet " in port
    assert " mac_address string replaces MAC address; if omitted, the service assigns one" in port
    assert " admin_state_up boolean in place Administrative state: true is up. Default: true. " in port
    assert " Status: waits while status is BUILD; good is every other one; ERROR fails " in port
    assert " Comes after: all OS::Neutron::Subnet whose network is its network " in port
    assert " Replaced: also if a policy says so" in server
    assert " Without effect: multiattach " in section(pages, "OS::Cinder::Volume")
    address = section(pages, "OS::Neutron::FloatingIP")
    assert "whose network of subnet is its network of port_id;" in address


def test_the_examples_of_the_documents_are_not_forgotten() -> None:
    assert len(examples_of("templates.md")) >= 11
    assert all(example.outputs for example in examples_of("templates.md"))


@dataclass(frozen=True)
class Example:
    """The text below one heading."""

    title: str
    template: str
    files: dict[str, str]
    environment: Json
    outputs: Json


def examples_of(document: str) -> Sequence[Example]:
    parts = re.split(r"^## ", (DOC / document).read_text(), flags=re.MULTILINE)[1:]
    examples = []
    for part in parts:
        title, _, text = part.partition("\n")
        main = ""
        files = {}
        environment = None
        outputs = None
        for language, block in FENCE.findall(text):
            name = re.match(r"# (\S+)\n", block)
            if language == "json":
                outputs = json.loads(block)
            elif language == "yaml" and name and name[1] == "environment":
                environment = yaml.safe_load(block)
            elif language == "yaml" and name:
                files[name[1]] = block
            elif language == "yaml":
                main = block
        if main:
            examples.append(Example(title, main, files, environment, outputs))
    return examples


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("examples"), conductors=1)
    yield running
    running.stop()


@pytest.mark.parametrize("example", examples_of("templates.md"), ids=lambda example: example.title)
def test_an_example_gives_what_the_guide_says(service: Service, example: Example) -> None:
    fields: Json = {"files": example.files}
    if example.environment is not None:
        fields["environment"] = example.environment
    name = re.sub(r"\W", "-", example.title)
    path = service.create("guide", name, example.template, **fields)
    if "WaitConditionHandle" in example.template:
        wait_for(lambda: service.call("POST", f"{path}/resources/handle/signal", SIGNAL).status == 200, 120)
    assert service.settled(path)["stack_status"] == "CREATE_COMPLETE", service.get(path)
    outputs = service.get(path)["stack"]["outputs"]
    assert {output["output_key"]: output["output_value"] for output in outputs} == example.outputs
    assert not [output for output in outputs if output.get("output_error")]


def test_each_type_has_an_example_that_is_valid(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples from templates are tested with those."""
    monkeypatch.syspath_prepend(str(DOC / "ext"))
    type_examples = importlib.import_module("type_examples")
    types = importlib.import_module("stoker_types").own_types()
    problems = {}
    for name, declared in types:
        example = type_examples.example_of(name, declared)
        assert name in str(example.lines())
        template = {"heat_template_version": "2018-08-31", "resources": example.resources}
        body = {"template": template}
        if not example.source and (answer := service.call("POST", "/v1/x/validate", body)).status != 200:
            problems[name] = answer.error["message"]
    assert len(types) > 100
    assert not problems


def test_each_type_has_an_example_that_ran_or_the_reason_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(DOC / "ext"))
    names = {name for name, _ in importlib.import_module("stoker_types").own_types()}
    run = importlib.import_module("type_examples").names_run()
    assert names - run == set(WITHOUT_EXAMPLE)
    samples = importlib.import_module("type_samples").BY_TYPE
    assert samples.keys() - WITHOUT_EXAMPLE.keys() == set(), "no example is made of these"


@pytest.mark.full
def test_the_plugin_of_the_guide_is_installed_and_works(tmp_path: pathlib.Path) -> None:
    board = tmp_path / "board"
    board.mkdir()
    site = plugin_page.install(tmp_path)
    example, _ = examples_of("plugins.md")
    running = Service(tmp_path, conductors=1, env={"PYTHONPATH": str(site)})
    try:
        path = running.created("t", "s", example.template, parameters={"board": str(board)})
        [output] = running.get(path)["stack"]["outputs"]
        assert pathlib.Path(output["output_value"]).read_text() == "buy milk"
        changed = example.template.replace("buy milk", "buy bread")
        body = {"template": changed, "parameters": {"board": str(board)}}
        assert running.call("PUT", path, body).status == 202
        assert running.settled(path)["stack_status"] == "UPDATE_COMPLETE"
        assert pathlib.Path(output["output_value"]).read_text() == "buy bread"
        assert running.call("DELETE", path).status == 204
        wait_for(lambda: not list(board.iterdir()), 120)
    finally:
        running.stop()
