"""The console while the API is slow or cut: it says that it has not read, never that there is nothing."""

import dataclasses
import re
from collections.abc import Iterator

import pytest
from client.serving import Service
from harness.browser import Browser, shoot
from harness.templates import flat
from playwright.sync_api import Locator, Page, Route, expect

from console.conftest import SHOP, Console, held, node
from console.gated_proxy import GatedProxy

TABS = ("graph", "timeline", "resources", "events", "outputs", "why", "drift", "template", "update")
NOTHING = re.compile("no stacks yet|no resources|Nothing has|no outputs|Nothing is stuck|were purged|no task")
"""The sentences about what is empty."""


@pytest.fixture
def proxy(service: Service) -> Iterator[GatedProxy]:
    proxy = GatedProxy(service.url)
    yield proxy
    proxy.close()


@pytest.fixture
def gated(console: Console, proxy: GatedProxy) -> Console:
    """The console behind a proxy that can be slow or cut."""
    return dataclasses.replace(console, root=proxy.url)


def _view(page: Page, phase: str) -> Locator:
    return page.locator(f".view[data-phase={phase}]")


def _reload(page: Page) -> None:
    """Load the page again, without anything that it has read."""
    page.reload(wait_until="commit")
    page.locator("#top nav").wait_for()


def test_a_slow_api_is_loading_and_then_empty(gated: Console, proxy: GatedProxy) -> None:
    proxy.gate.clear()
    page = gated.open(width=400, height=800)
    expect(page.get_by_text("Reading the stacks … The API has not answered for")).to_be_visible()
    expect(page.locator("main")).not_to_contain_text(NOTHING)
    shoot(page, "loading-phone")
    proxy.gate.set()
    expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()
    expect(_view(page, "loading")).to_have_count(0)


def test_a_cut_api_is_failed_and_then_stale(gated: Console, proxy: GatedProxy) -> None:
    gated.create_complete("calm", flat(1))
    proxy.faulty.set()
    page = gated.open()
    alert = page.get_by_role("alert").filter(has_text="The stacks could not be read: The API does not answer")
    expect(alert).to_be_visible()
    expect(page.locator("main")).not_to_contain_text(NOTHING)
    shoot(page, "failed")
    proxy.faulty.clear()
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("tbody tr")).to_contain_text("calm")
    expect(alert).to_have_count(0)

    proxy.faulty.set()
    stale = page.get_by_role("alert").filter(has_text=re.compile(r"this is how the stacks looked \d+ s ago"))
    expect(stale).to_be_visible()
    expect(page.locator("tbody tr")).to_contain_text("calm")
    shoot(page, "stale")
    proxy.faulty.clear()
    page.get_by_role("button", name="Try again").click()
    expect(stale).to_have_count(0)


@pytest.mark.full
@pytest.mark.parametrize("width", [1280, 400])
def test_each_tab_says_that_it_has_not_read(gated: Console, proxy: GatedProxy, width: int) -> None:
    address = gated.create("shop", SHOP, environment=held("schema"))
    page = gated.open(address, width=width)
    expect(node(page, "schema")).to_be_visible()
    for tab in TABS:
        page.goto(f"{proxy.url}/console/{address}/{tab}")
        panel = page.get_by_role("tabpanel")
        proxy.gate.clear()
        _reload(page)
        expect(panel.get_by_text(re.compile("^Reading the "))).to_be_visible()
        expect(panel).not_to_contain_text(NOTHING)
        expect(_view(page, "ready")).to_have_count(0)
        proxy.gate.set()
        expect(panel.locator("> .view")).to_have_attribute("data-phase", re.compile("ready|empty"))
        proxy.faulty.set()
        _reload(page)
        expect(page.get_by_role("alert").filter(has_text="The stack could not be read")).to_be_visible()
        expect(page.locator("main")).not_to_contain_text(NOTHING)
        expect(panel).to_be_hidden()
        proxy.faulty.clear()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), tab


def test_a_tab_shows_nothing_of_the_tab_before_it(gated: Console, proxy: GatedProxy) -> None:
    page = gated.open(gated.create_complete("shop", SHOP))
    expect(node(page, "network")).to_be_visible()
    page.get_by_role("tab", name="Outputs").click()
    expect(page.get_by_role("heading", name="address")).to_be_visible()
    proxy.gate.clear()
    page.get_by_role("tab", name="Why").click()
    panel = page.get_by_role("tabpanel")
    expect(panel.get_by_text("Reading the diagnosis …")).to_be_visible()
    expect(panel).not_to_contain_text("address")
    page.get_by_role("tab", name="Timeline").click()
    expect(panel.get_by_text("Reading the timeline …")).to_be_visible()
    expect(panel).not_to_contain_text(NOTHING)
    proxy.gate.set()
    expect(panel.locator(".timeline .row")).not_to_have_count(0)


@pytest.mark.full
def test_the_address_keeps_what_is_chosen(console: Console) -> None:
    address = console.create("shop", SHOP, environment=held("schema"))
    page = console.open(address)
    page.get_by_role("group", name="Filter by state").get_by_role("button", name=re.compile("held")).click()
    expect(page.locator(".graph .node")).to_have_count(1)
    node(page, "schema").click()
    assert page.url.endswith("?state=held&resource=schema")
    page.reload()
    side = page.get_by_role("complementary", name="The chosen resource")
    expect(side.get_by_role("heading", level=2)).to_have_text("schema")
    expect(page.locator(".graph .node")).to_have_count(1)
    shoot(page, "filtered-graph")
    page.goto(f"{console.service.url}/console/{address}/resources?q=web/")
    expect(page.locator("tbody tr")).to_have_count(3)
    page.get_by_role("link", name="web/1").click()
    expect(side.get_by_role("heading", level=2)).to_have_text("1")
    expect(node(page, "1")).to_have_class(re.compile(r"\bchosen\b"))


@pytest.mark.full
def test_a_list_is_sorted_and_several_stacks_are_deleted(console: Console) -> None:
    for name in ("web-2", "web-10", "api"):
        console.create_complete(name, flat(1))
    page = console.open()
    names = page.locator("tbody tr td.grow")
    page.get_by_role("button", name="Name").click()
    expect(names).to_have_text(["api", "web-2", "web-10"])
    page.get_by_role("button", name="Name").click()
    expect(names).to_have_text(["web-10", "web-2", "api"])
    page.get_by_label("Search stacks").fill("WEB")
    page.get_by_label("Select all that are shown").check()
    bulk = page.get_by_role("toolbar", name="Selected stacks")
    expect(bulk).to_contain_text("2 selected")
    shoot(page, "bulk")
    bulk.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete 2 stacks").click()
    page.get_by_label("Search stacks").fill("")
    expect(names).to_have_text(["api"])


@pytest.mark.full
def test_a_create_is_rolled_back(console: Console) -> None:
    page = console.open(console.create("doomed", flat(2), environment=held("r1")))
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(page.locator("main .title .badge").first).to_have_text("rollback complete")
    expect(page.get_by_text("This stack has no resources.")).to_be_visible()


def _graph_of(count: int) -> dict[str, object]:
    """Return the answer of …/graph of a stack with many resources, as the API has it."""
    return {
        "change": "1",
        "stack": {"id": "big", "name": "big", "deadline": None, "seconds_left": None},
        "nested_stacks": [],
        "more_resources": count >= 10_000,
        "more_edges": False,
        "resources": [
            {
                **{"id": str(index), "stack": "big", "name": f"r{index}", "type": "OS::Heat::TestResource"},
                **{
                    "physical_resource_id": None,
                    "reason": "",
                    "nested": None,
                    "breakpoint": None,
                    "task": None,
                },
                "state": "CREATE_FAILED" if index == count // 2 else "CREATE_COMPLETE",
                "required_by": [f"r{index + step}" for step in (40, 47) if index + step < count],
                "creation_time": "2026-11-24T02:12:38.508284Z",
                "updated_time": "2026-11-24T02:12:38.508284Z",
            }
            for index in range(count)
        ],
    }


@pytest.mark.full
@pytest.mark.parametrize("count", [2_000, 10_000])
def test_one_of_many_resources_is_found_by_its_state(console: Console, count: int) -> None:
    address = console.create_complete("many", flat(1))
    page = console.browser.page()
    page.route("**/graph?*", lambda route: route.fulfill(json={"graph": _graph_of(count)}))
    page.goto(f"{console.service.url}/console/{address}")
    page.get_by_label("Project").fill(console.project)
    page.get_by_role("button", name="Open").click()
    page.get_by_role("button", name="Unfold all").click()
    expect(page.locator(".graph .far path")).not_to_have_count(0)
    number = "more than 10,000" if count == 10_000 else "2000"
    expect(page.locator(".facts")).to_contain_text(f"resources {number}")
    shoot(page, f"graph-{count}")
    assert page.locator(".graph *").count() < 6000
    page.get_by_role("group", name="Filter by state").get_by_role("button", name=re.compile("failed")).click()
    expect(page.locator(".graph .node")).to_have_count(1)
    node(page, f"r{count // 2}").click()
    page.get_by_role("tab", name="Resources").click()
    expect(page.locator("tbody tr")).to_have_count(100)


@pytest.mark.full
def test_a_big_stack_says_that_older_events_are_gone(console: Console, browser: Browser) -> None:
    address = console.create_complete("purged", flat(2))
    page = console.browser.page()

    def without_the_first(route: Route) -> None:
        answer = route.fetch()
        events = answer.json()["events"]
        route.fulfill(response=answer, json={"events": events[:-1]})

    page.route(re.compile("/events.*sort_dir=desc"), without_the_first)
    page.goto(f"{console.service.url}/console/{address}/timeline")
    page.get_by_label("Project").fill(console.project)
    page.get_by_role("button", name="Open").click()
    expect(page.get_by_text("Older events are gone")).to_be_visible()
    page.get_by_role("tab", name="Events").click()
    expect(page.get_by_text("Older events are gone")).to_be_visible()


@pytest.mark.full
def test_a_resource_is_linked_to_its_page_in_horizon(console: Console) -> None:
    address = console.create_complete("shop", SHOP)
    page = console.browser.page()

    def with_horizon(route: Route) -> None:
        answer = route.fetch()
        route.fulfill(response=answer, json={**answer.json(), "horizon": "https://cloud.example.org/horizon"})

    page.route("**/console/settings", with_horizon)
    page.goto(f"{console.service.url}/console/{address}/graph?resource=web")
    page.get_by_label("Project").fill(console.project)
    page.get_by_role("button", name="Open").click()
    side = page.get_by_role("complementary", name="The chosen resource")
    link = side.get_by_role("link", name="Show in Horizon")
    expect(link).to_have_attribute(
        "href", re.compile("^https://cloud.example.org/horizon/project/stacks/stack/[0-9a-f-]{36}/$")
    )
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(page.locator(".facts").get_by_role("link", name="Show in Horizon")).to_be_visible()
