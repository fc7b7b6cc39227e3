"""Controls are large enough and within the edge, columns fit their contents, and zeros are quiet."""

import re

import pytest
from harness.templates import flat, one, template
from playwright.sync_api import Page, expect

from console.conftest import SHOP, Console, held, node

PHONE = 390
SMALL_LAPTOP = 1080
LEAST = 24
CONTROLS = """(edge) => [...document.querySelectorAll('button, a, select, summary, input, textarea')]
  .map((element) => element.closest('label') ?? element)
  .filter((element) => element.checkVisibility() && !element.closest('.sr, p, .tabs, th, .skip'))
  .map((element) => [element.textContent || element.tagName, element.getBoundingClientRect()])
  .filter(([, box]) => box.width < %d || box.height < %d || box.left < 0 || box.right > edge)
  .map(([text, box]) => `${text}: ${box.width} x ${box.height}, from ${box.left} to ${box.right}`)"""


def wrong_controls(page: Page, edge: int = PHONE) -> list[str]:
    """The controls that are smaller than a finger, or beyond the edge; heads and tabs scroll."""
    wrong: list[str] = page.evaluate(CONTROLS % (LEAST, LEAST), edge)
    return wrong


@pytest.mark.full
def test_each_control_is_large_enough_and_within_the_edge_of_a_phone(console: Console) -> None:
    address = console.create("shop-of-the-spring", SHOP, environment=held("schema"))
    page = console.open(width=PHONE)
    for place in ["#/", "#/ring", "#/launch", *(f"{address}/{tab}" for tab in ("graph", "timeline", "why"))]:
        page.goto(f"{console.service.url}/console/{place}")
        expect(page.get_by_text(re.compile("loading", re.IGNORECASE))).to_have_count(0)
        expect(page.locator("h1")).to_be_visible()
        page.wait_for_load_state("networkidle")
        assert (place, wrong_controls(page)) == (place, [])
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE


@pytest.mark.full
def test_a_small_laptop_shows_the_commands_of_the_ring(console: Console) -> None:
    page = console.open("#/ring", width=SMALL_LAPTOP)
    expect(page.get_by_role("button", name=re.compile("^Drain")).first).to_be_visible()
    edge = page.locator("table").evaluate("table => table.parentElement.getBoundingClientRect().right")
    assert wrong_controls(page, edge) == []


def test_a_list_gives_a_name_the_room_that_it_needs(console: Console) -> None:
    console.create_complete("a", flat(1), tags="blue")
    page = console.open(width=1440)
    name = page.get_by_role("columnheader", name="Name").bounding_box()
    tags = page.get_by_role("columnheader", name="Tags").bounding_box()
    assert name is not None
    assert tags is not None
    assert name["width"] < tags["width"] / 3


def test_states_without_a_stack_are_one_quiet_line(console: Console) -> None:
    console.create_complete("calm", flat(1))
    page = console.open()
    tiles = page.get_by_role("group", name="Stacks by state")
    expect(tiles.get_by_role("button")).to_have_count(1)
    expect(tiles).to_contain_text("none failed, held, in progress or suspended")


def test_many_resources_are_groups_that_unfold_and_a_map_moves_the_view(console: Console) -> None:
    resources = {f"member{index}": one(fail=index == 7) for index in range(301)}
    page = console.open(console.create("fleet", template(resources), disable_rollback=True))
    group = node(page, "301 × TestResource")
    expect(group).to_have_class(re.compile(r"\bbad\b"))
    group.click()
    side = page.get_by_role("complementary", name="The chosen resource")
    side.get_by_role("button", name="member7", exact=True).click()
    expect(node(page, "member7")).to_have_class(re.compile(r"\bchosen\b"))
    minimap = page.locator(".minimap")
    expect(minimap).to_be_visible()
    part = minimap.locator(".window")
    corner = part.get_attribute("x"), part.get_attribute("y")
    minimap.click(position={"x": 150, "y": 90})
    expect(part).not_to_have_attribute("x", corner[0] or "")
    expect(part).not_to_have_attribute("y", corner[1] or "")
    page.get_by_role("button", name="Fit").click()
    expect(minimap).to_be_hidden()
    expect(page.locator(".graph .far path")).not_to_have_count(0)
