"""The console in a real browser: each view, and its changes while it is shown.

Six of these tests run with `make test`: they open each view, and send what users send most.
"""

import re
import typing

import pytest
from client.serving import Service
from harness.browser import Browser, shoot
from harness.templates import flat, one, template
from harness.waiting import wait_for
from playwright.sync_api import Page, expect

from console.conftest import SHOP, Console, held, node

Json = typing.Any


def test_the_overview_follows_stacks_without_a_reload(console: Console) -> None:
    page = console.open()
    expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()
    console.create_complete("calm", flat(1), tags="blue,web")
    console.create("held", flat(2), environment=held("r1"))
    console.create("broken", template({"bad": one(fail=True)}))
    tiles = page.get_by_role("group", name="Stacks by state")
    for state in ("failed", "held", "complete"):
        expect(tiles.get_by_role("button", name=re.compile(f"1 {state}"))).to_be_visible()
    stuck = page.get_by_role("region", name="Needs attention")
    expect(stuck.get_by_role("listitem")).to_have_count(2)
    expect(stuck).to_contain_text("CREATE paused at breakpoint: pre-create on r1")
    shoot(page, "overview")

    rows = page.locator("tbody tr")
    page.get_by_label("Search stacks").fill("BLUE")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("calm")
    page.get_by_label("Search stacks").fill("")
    tiles.get_by_role("button", name=re.compile("failed")).click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("broken")

    stuck.get_by_role("button", name="Continue").click()
    expect(tiles.get_by_role("button", name=re.compile("2 complete"))).to_be_visible()


def test_the_graph_follows_a_stack_that_is_held_and_continued(console: Console) -> None:
    page = console.open(console.create("shop", SHOP, environment=held("schema")))
    expect(node(page, "schema")).to_have_class(re.compile(r"\bheld\b"))
    expect(node(page, "network")).to_have_class(re.compile(r"\bok\b"))
    expect(node(page, "page")).to_have_class(re.compile(r"\bwait\b"))
    expect(node(page, "2")).to_have_count(0)
    page.get_by_role("button", name="Unfold all").click()
    expect(node(page, "2")).to_have_class(re.compile(r"\bok\b"))
    node(page, "schema").click()
    side = page.get_by_role("complementary", name="The chosen resource")
    expect(side).to_contain_text("Held at pre-create")
    expect(side).to_contain_text("database")
    shoot(page, "graph")

    boxes = page.get_by_role("region", name="Breakpoints")
    expect(boxes).to_contain_text("schema")
    boxes.get_by_role("button", name="Continue all").click()
    expect(node(page, "page")).to_have_class(re.compile(r"\bok\b"))
    expect(boxes).to_be_hidden()
    expect(page.locator("main .title .badge").first).to_have_text("create complete")
    side.get_by_role("button", name="Show attributes").click()
    expect(side).to_contain_text("physical_resource_id")


@pytest.mark.full
def test_stepping_holds_what_comes_next(console: Console) -> None:
    page = console.open(console.create("shop", SHOP, environment=held("schema")))
    boxes = page.get_by_role("region", name="Breakpoints")
    expect(boxes).to_contain_text("schema")
    # A step would hold the members of the group, too, had they not begun.
    expect(node(page, "web")).to_have_class(re.compile(r"\bok\b"))
    boxes.get_by_role("button", name="Step").click()
    expect(boxes.get_by_role("listitem")).to_have_text(re.compile("^page"))


@pytest.mark.full
def test_resources_events_and_outputs_are_listed(console: Console) -> None:
    address = console.create_complete("shop", SHOP)
    page = console.open(f"{address}/resources")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(9)
    page.get_by_label("Search resources").fill("web/")
    expect(rows).to_have_count(3)
    page.get_by_role("tab", name="Events").click()
    expect(rows.first).to_contain_text("Stack CREATE completed successfully")
    shoot(page, "events")
    page.get_by_role("tab", name="Outputs").click()
    expect(page.get_by_role("heading", name="address")).to_be_visible()
    expect(page.locator(".panel pre")).to_contain_text("shop-page-")
    page.get_by_role("tab", name="Template").click()
    expect(page.locator(".panel pre")).to_contain_text("heat_template_version: ")


@pytest.mark.full
def test_why_names_the_cause_and_what_helps(console: Console) -> None:
    page = console.open(f"{console.create('shop', SHOP, environment=held('schema'))}/why")
    cards = page.locator(".card.why")
    expect(cards).to_contain_text(["it is held at the breakpoint pre-create"])
    expect(cards).to_contain_text(["openstack stack continue"])
    shoot(page, "why")
    cards.get_by_role("button", name="Continue").click()
    expect(page.get_by_text("Nothing is stuck")).to_be_visible()


def test_a_failed_stack_is_explained(console: Console) -> None:
    broken = template({"good": one(), "bad": {**one(fail=True), "depends_on": ["good"]}})
    page = console.open(f"{console.create('broken', broken)}/why")
    failure = page.locator(".card.bad")
    expect(failure).to_contain_text("Test Resource failed bad")
    expect(failure.get_by_role("heading")).to_have_text("bad")
    expect(page.locator(".card.why").first).to_contain_text("openstack stack update --existing")
    page.get_by_role("tab", name="Timeline").click()
    bars = page.locator(".timeline .row").filter(has_text=re.compile("^bad")).locator(".bar.failed")
    expect(bars).to_have_attribute(
        "title", re.compile(r"^create, attempt 1, conductor-[12], .*: Test Resource failed bad$")
    )
    expect(page.locator(".timeline .row.decisive .label")).to_have_text(["good", "bad"])
    shoot(page, "timeline")


@pytest.mark.full
def test_an_update_is_compared_before_it_is_sent(console: Console) -> None:
    parameters = {"size": {"type": "number", "default": 1, "description": "Of it all"}}
    resources = {"a": one(value={"get_param": "size"}), "b": one(value="b"), "c": one(value="c")}
    address = console.create_complete("changed", template(resources, parameters=parameters))
    page = console.open(f"{address}/update")
    source = page.get_by_label("Template", exact=True)
    expect(source).to_have_value(re.compile("resources:"))
    page.get_by_label("size").fill("5")
    more = {"a": resources["a"], "b": one(value="b", update_replace_value="x"), "d": one()}
    source.fill(str(template(more, parameters=parameters)).replace("'", '"'))
    page.get_by_role("button", name="Compare").click()
    result = page.get_by_role("region", name="What the update would do")
    for kind, name in (("added", "d"), ("updated", "a"), ("replaced", "b"), ("deleted", "c")):
        expect(result.locator(f"li.{kind}")).to_contain_text(name)
    shoot(page, "compare")
    result.get_by_role("button", name="Send the update").click()
    expect(page.locator("main .title .badge").first).to_have_text("update complete")
    expect(node(page, "d")).to_have_class(re.compile(r"\bok\b"))
    expect(node(page, "c")).to_have_count(0)


def test_a_comparison_that_is_refused_says_why(console: Console) -> None:
    page = console.open(f"{console.create_complete('changed', flat(1))}/update")
    expect(page.get_by_label("Template", exact=True)).to_have_value(re.compile("resources:"))
    page.get_by_label("Template", exact=True).fill("resources: [")
    page.get_by_role("button", name="Compare").click()
    expect(
        page.get_by_role("alert").filter(has_text=re.compile("line|version|parse", re.IGNORECASE))
    ).to_be_visible()


LAUNCHED = """
heat_template_version: 2018-08-31
description: What is launched
parameters:
  length: {type: number, default: 8, constraints: [{range: {min: 4, max: 20}}]}
  kind: {type: string, description: Of characters, constraints: [{allowed_values: [small, large]}]}
  secret: {type: string, hidden: true}
  loud: {type: boolean, default: false}
resources:
  word: {type: OS::Heat::RandomString, properties: {length: {get_param: length}}}
outputs:
  kind: {value: {get_param: kind}}
  word: {value: {get_attr: [word, value]}}
"""


def test_a_stack_is_launched_by_a_form_of_its_parameters(console: Console) -> None:
    page = console.open("#/launch")
    page.get_by_label("Template", exact=True).fill(LAUNCHED)
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_label("secret")).to_have_attribute("type", "password")
    expect(page.get_by_label("loud")).to_have_value("false")
    page.get_by_label("length").fill("12")
    page.get_by_label("kind").select_option("large")
    page.get_by_label("secret").fill("hush")
    page.get_by_label("Name of the stack").fill("launched")
    shoot(page, "launch")
    page.get_by_role("button", name="Create the stack").click()
    expect(page.locator("main .title .badge").first).to_have_text("create complete")
    page.get_by_role("tab", name="Outputs").click()
    expect(page.locator(".card").filter(has_text="kind").locator("pre")).to_have_text("large")
    expect(page.locator(".card").filter(has_text="word").locator("pre")).to_have_text(re.compile("^.{12}$"))
    assert "hush" not in page.url


@pytest.mark.full
def test_a_template_that_is_refused_says_why(console: Console) -> None:
    page = console.open("#/launch")
    page.get_by_label("Template", exact=True).fill(
        "heat_template_version: 2018-08-31\nresources: {a: {type: None::Such}}"
    )
    page.get_by_role("button", name="Continue").click()
    expect(page.get_by_role("alert").filter(has_text="None::Such")).to_be_visible()


@pytest.mark.full
def test_a_stack_is_cancelled_and_deleted_after_a_question(console: Console) -> None:
    page = console.open(console.create("doomed", flat(2), environment=held("r1")))
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop here").click()
    expect(page.locator("main .title .badge").first).to_have_text("create failed")
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("dialog").get_by_role("button", name="Back").click()
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete the stack").click()
    expect(page.locator("main .title .badge").first).to_have_text("delete complete")


HOSTILE = ("<script>document.title='owned'", "<img src=x onerror=alert(1)>", "\u202egpj.exe", "x" * 255)


def test_hostile_names_are_texts(console: Console) -> None:
    resources = {name: one() for name in HOSTILE}
    hostile = template(resources, description=HOSTILE[0], outputs={name: {"value": name} for name in HOSTILE})
    address = console.create_complete("hostile", hostile, tags=["<b>tag</b>", "\u202eevil"])
    page = console.open()
    expect(page.locator("tbody tr").first).to_contain_text("<b>tag</b>")
    for tab in ("graph", "timeline", "resources", "events", "outputs", "template"):
        page.goto(f"{console.service.url}/console/{address}/{tab}")
        expect(page.get_by_role("tabpanel")).to_contain_text("<script>")
        expect(page.get_by_role("tabpanel")).to_contain_text("⟨U+202E⟩gpj.exe")
        assert "\u202e" not in page.locator("body").inner_text()
        assert page.locator("main script, main img").count() == 0
        assert _is_within(page)
        if tab == "graph":
            shoot(page, "hostile")
    assert page.title() != "owned"


def _is_within(page: Page) -> bool:
    """Return whether nothing makes the page wider than the window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.full
def test_a_phone_shows_each_view_without_scrolling_sideways(console: Console) -> None:
    address = console.create("shop", SHOP, environment=held("schema"))
    page = console.open(address, width=400, height=800, dark=True)
    expect(node(page, "schema")).to_have_class(re.compile(r"\bheld\b"))
    shoot(page, "phone-graph")
    for tab in ("timeline", "resources", "events", "outputs", "why", "drift", "template", "update"):
        page.get_by_role("tab", name=tab.capitalize()).click()
        expect(page.get_by_role("tab", name=tab.capitalize())).to_have_attribute("aria-selected", "true")
        assert _is_within(page), tab
    for view in ("#/", "#/launch", "#/ring"):
        page.goto(f"{console.service.url}/console/{view}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        assert _is_within(page), view
    page.goto(f"{console.service.url}/console/#/")
    expect(page.locator("tbody tr")).to_have_count(1)
    shoot(page, "phone")


@pytest.mark.full
def test_the_keyboard_reaches_everything(console: Console) -> None:
    console.create("shop", SHOP, environment=held("schema"))
    page = console.open()
    expect(page.locator("tbody tr")).to_have_count(1)
    _tab_to(page, "a", "shop")
    page.keyboard.press("Enter")
    expect(node(page, "schema")).to_be_visible()
    assert page.evaluate("document.activeElement.tagName") == "H1"
    page.get_by_role("application").focus()
    page.keyboard.press("ArrowRight")
    for _ in range(10):
        if page.locator(".side h2").inner_text() == "schema":
            break
        page.keyboard.press(
            "ArrowDown" if page.locator(".side h2").inner_text() in ("network", "web") else "ArrowRight"
        )
    expect(page.locator(".node.chosen")).to_have_count(1)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.closest('.side') !== null")
    page.get_by_role("tab", name="Graph").focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_role("tab", name="Timeline")).to_be_focused()
    expect(page.get_by_role("tab", name="Timeline")).to_have_attribute("aria-selected", "true")


def _tab_to(page: Page, tag: str, text: str) -> None:
    """Press Tab until an element has the focus, as one who has no mouse does."""
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("[document.activeElement.localName, document.activeElement.innerText]") == [
            tag,
            text,
        ]:
            return
    pytest.fail(f"Tab does not reach {text}")


def _lightness(page: Page) -> float:
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3


@pytest.mark.full
def test_dark_and_light_follow_the_system_and_the_switch(console: Console) -> None:
    page = console.open(dark=True)
    assert _lightness(page) < 60
    switch = page.get_by_role("button", name=re.compile("^Theme"))
    switch.click()
    assert _lightness(page) > 200
    page.reload()
    expect(page.locator("#top nav")).to_be_visible()
    assert _lightness(page) > 200
    switch.click()
    switch.click()
    assert _lightness(page) < 60
    expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()
    shoot(page, "dark")


@pytest.mark.full
def test_a_thousand_resources_leave_few_elements_in_the_page(console: Console) -> None:
    """The page has only the visible part of the graph and of the timeline: both move at any size."""
    address = console.create_complete("thousand", _layers(1000))
    page = console.open(address)
    expect(page.locator(".facts")).to_contain_text("resources 1000")
    page.get_by_role("button", name="Unfold all").click()
    expect(page.locator(".graph .far path")).not_to_have_count(0)
    shoot(page, "thousand")
    counts = [page.locator(".graph *").count()]
    for _ in range(10):
        page.get_by_role("button", name="Zoom in").click()
        page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        counts.append(page.locator(".graph *").count())
    page.locator("svg.graph").press("ArrowRight")
    expect(page.locator(".graph .node")).not_to_have_count(0)
    page.get_by_role("tab", name="Timeline").click()
    expect(page.locator(".timeline .row")).not_to_have_count(0)
    counts.append(page.locator(".timeline *").count())
    assert max(counts) < 6000, counts
    page.get_by_role("tab", name="Resources").click()
    expect(page.locator("tbody tr")).to_have_count(100)


def _layers(count: int) -> Json:
    resources = {}
    for index in range(count):
        needed = [f"r{index - back}" for back in (40, 47) if index >= 47]
        resources[f"r{index}"] = {**one(), "depends_on": needed}
    return template(resources)


@pytest.mark.full
def test_the_ring_shows_shares_plans_and_drains(service: Service, console: Console) -> None:
    page = console.open("#/ring")
    bar = page.get_by_role("img", name="Shares of the ring")
    expect(bar.locator("> span")).to_have_count(2)
    page.get_by_role("button", name="Plan that conductor-1 leaves").click()
    plan = page.get_by_role("region", name="Plan")
    expect(plan).to_contain_text("only conductor-2 would be left")
    expect(plan.locator(".moving")).to_have_count(1)
    shoot(page, "ring")
    page.get_by_label("Name of a conductor that joins").fill("third")
    page.get_by_role("button", name="Plan the join").click()
    expect(plan).to_contain_text("If third joined")
    expect(plan.locator(".moving")).to_have_count(2)

    row = page.locator("main .tablebox tbody tr").filter(has_text="conductor-1")
    row.get_by_role("button", name="Drain conductor-1").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("a new kernel")
    page.get_by_role("dialog").get_by_role("button", name="Drain it").click()
    expect(row).to_contain_text("a new kernel")
    expect(row.locator(".badge").first).to_have_text("draining")
    expect(bar.locator("> span")).to_have_count(1)
    row.get_by_role("button", name="Undrain conductor-1").click()
    expect(bar.locator("> span")).to_have_count(2)


@pytest.mark.full
def test_the_overview_shows_what_each_conductor_does(console: Console) -> None:
    page = console.open()
    rates = page.locator("details.fleet")
    idle = page.get_by_text("No conductor has anything to do.")
    # A view of ten seconds: the tasks of the tests before have to leave it first.
    expect(idle).to_be_visible()
    expect(rates).to_be_hidden()
    paths: list[str] = []
    totals = [0.0]

    def works() -> bool:
        """Return whether the page shows work, of which there is more until it does."""
        paths.append(console.create_complete(f"busy{len(paths)}", flat(30)))
        text = rates.evaluate("element => element.innerText")
        totals[:] = [float(rate) for rate in re.findall(r"[\d.]+(?= tasks/s)", text)] or [0.0]
        return totals[0] > 0

    wait_for(works, 120)
    expect(rates.locator("li")).to_have_count(2)
    shoot(page, "rates")
    total, *each = totals
    assert len(each) == 2
    assert sum(each) == pytest.approx(total, abs=0.01)
    assert total <= 3.0 * len(paths)
    expect(idle).to_be_visible()
    expect(rates).to_be_hidden()


@pytest.mark.full
def test_a_conductor_shows_the_tasks_in_its_hands(console: Console) -> None:
    console.create("slow", template({"sleeps": one(action_wait_secs={"create": 600})}))
    paths: list[str] = []

    def is_taken() -> bool:
        paths[:] = _at_work(console)
        return paths != []

    wait_for(is_taken)
    [host] = paths
    page = console.open(f"#/conductor/{host}")
    expect(page.locator(".facts")).to_contain_text("of 32 busy")
    row = page.locator("tbody tr").filter(has_text=console.project)
    expect(row).to_contain_text("sleeps")
    shoot(page, "conductor")
    row.get_by_role("link", name="slow").click()
    expect(page.locator(".card.why")).to_contain_text(["sleeps"])
    page.get_by_role("button", name="Cancel …").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop here").click()
    expect(page.locator("main .title .badge").first).to_have_text("create failed")


def _at_work(console: Console) -> list[str]:
    """The conductors that have a task of the project in hand."""
    return [
        host
        for host in ("conductor-1", "conductor-2")
        for task in console.service.get(f"/v1/admin/conductors/{host}")["conductor"]["tasks"]
        if task["project"] == console.project
    ]


@pytest.mark.full
def test_another_project_s_stack_is_not_shown(console: Console, service: Service) -> None:
    path = service.created("somebody-else", "private", flat(1))
    page = console.open(console.address(path))
    expect(page.get_by_role("alert").filter(has_text="does not exist any more")).to_be_visible()
    page.goto(f"{service.url}/console/#/")
    expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()


@pytest.mark.full
def test_no_script_but_the_console_s_own_runs(service: Service, browser: Browser) -> None:
    page = browser.page()
    page.goto(f"{service.url}/console/")
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text):
        page.evaluate(
            """() => {
                const script = document.createElement("script");
                script.textContent = "document.title = 'owned'";
                document.body.append(script);
            }"""
        )
    assert page.title() == "Stoker"
    assert [text for text in browser.troubles if "Content Security Policy" in text]
    browser.troubles.clear()


@pytest.mark.full
def test_what_the_service_does_not_answer_is_said(console: Console) -> None:
    page = console.open()
    expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()
    page.context.set_offline(True)
    expect(page.get_by_role("alert").filter(has_text="The API does not answer")).to_be_visible()
    page.context.set_offline(False)
    expect(page.get_by_role("alert").filter(has_text="The API does not answer")).to_have_count(0)
