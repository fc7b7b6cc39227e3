"""One Stoker and one browser for the tests of the console; each test has a project and pages of its own."""

import dataclasses
import itertools
import re
import typing
from collections.abc import Iterator

import pytest
from client.serving import PATIENT, Service
from harness.browser import Browser
from harness.server import MissingServer
from harness.templates import one, template
from playwright.sync_api import Page, expect

Json = typing.Any
_NUMBERS = itertools.count(1)
expect.set_options(timeout=90_000)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    running = Service(tmp_path_factory.mktemp("console"), conductors=2, env=PATIENT)
    try:
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    try:
        browser = Browser()
    except MissingServer as error:
        pytest.fail(str(error), pytrace=False)
    with browser:
        yield browser


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Browser]:
    """The browser; nothing may have gone wrong in a page."""
    yield chromium
    assert chromium.close_pages() == []


@dataclasses.dataclass
class Console:
    """The console for one project.

    :ivar root: address under which the browser reaches it; None: that of the service.
    """

    service: Service
    browser: Browser
    project: str
    root: str | None = None

    def open(self, address: str = "", *, width: int = 1280, height: int = 860, dark: bool = False) -> Page:
        """A page of the console, of a user who has chosen the project."""
        page = self.browser.page(width=width, height=height, dark=dark)
        page.goto(f"{self.root or self.service.url}/console/{address}")
        page.get_by_label("Project").fill(self.project)
        page.get_by_role("button", name="Open").click()
        page.locator("#top nav").wait_for()
        return page

    def create(self, name: str, document: Json, **fields: Json) -> str:
        """Create a stack; the address of its page."""
        return self.address(self.service.create(self.project, name, document, **fields))

    def create_complete(self, name: str, document: Json, **fields: Json) -> str:
        """Create a stack and wait until it is complete; the address of its page."""
        return self.address(self.service.created(self.project, name, document, **fields))

    @staticmethod
    def address(path: str) -> str:
        """The address of a stack's page."""
        return "#/stack/" + "/".join(path.rsplit("/", 2)[1:])


@pytest.fixture
def console(service: Service, browser: Browser) -> Console:
    return Console(service, browser, f"console{next(_NUMBERS)}")


def held(name: str) -> Json:
    """An environment that holds a resource before it is created."""
    return {"resource_registry": {"resources": {name: {"hooks": "pre-create"}}}}


SHOP = template(
    {
        "network": one(value="n"),
        "volume": one(value="v"),
        "database": {**one(value="d"), "depends_on": ["network", "volume"]},
        "schema": {**one(value="s"), "depends_on": ["database"]},
        "web": {
            "type": "OS::Heat::ResourceGroup",
            "depends_on": ["network"],
            "properties": {"count": 3, "resource_def": one(value="%index%")},
        },
        "page": {**one(value="p"), "depends_on": ["schema", "web"]},
    },
    outputs={"address": {"description": "Of the page", "value": {"get_resource": "page"}}},
)


def node(page: Page, name: str) -> typing.Any:
    """A resource in the graph."""
    return page.locator(".graph .node").filter(has=page.locator("text", has_text=re.compile(f"^{name}$")))
