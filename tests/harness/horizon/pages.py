"""Horizon's pages of stacks, as a user works with them in a browser."""

import dataclasses
import pathlib
import re
import typing

from client.serving import Service
from harness.browser import Browser
from harness.cloud.layout import PASSWORD
from harness.horizon.server import Horizon
from playwright.sync_api import Locator, Page, expect

Json = typing.Any
ANSWERED = re.compile(r" stoker\.api\.app \[[^]]*\] (\S+) (\S+) (\d{3}) ")
"""A line of Stoker's log: method, route and status of a request."""
STACKS = "/project/stacks/"
PATIENCE = 180_000
"""Milliseconds.  A page of Horizon is many requests, and takes seconds where the machine is busy."""
expect.set_options(timeout=PATIENCE)


class Answers:
    """The answers of a Stoker, as its log has them."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._read = len(service.process.text())

    def new(self) -> list[tuple[str, str, int]]:
        """Method, route and status of each request since the last call."""
        text = self._service.process.text()
        requests = ANSWERED.findall(text[self._read :])
        self._read = len(text)
        return [(method, route, int(status)) for method, route, status in requests]


@dataclasses.dataclass
class Dashboard:
    """Horizon for one user.

    :ivar user: whose project has the same name.
    :ivar answers: Stoker's answers to all clients.
    """

    horizon: Horizon
    browser: Browser
    user: str
    answers: Answers
    _cookies: list[Json] = dataclasses.field(default_factory=list)

    def refused(self, *, expected: bool = False) -> list[tuple[str, str, int]]:
        """The requests since the last call that Stoker has not carried out.

        :param expected: Horizon's own complaints about them are forgotten.
        """
        if expected:
            self.horizon.recovered()
        return [answer for answer in self.answers.new() if answer[2] >= 400]

    def log_in(self, page: Page, password: str = PASSWORD) -> None:
        """Fill in the form, and send it."""
        page.set_default_timeout(PATIENCE)
        page.goto(f"{self.horizon.url}/auth/login/?next={STACKS}")
        page.get_by_label("User Name").fill(self.user)
        page.get_by_label("Password", exact=True).fill(password)
        page.get_by_role("button", name="Sign In").click()

    def open(self, path: str = STACKS) -> Page:
        """A page of its own, of the user, who has logged in."""
        page = self.browser.page()
        page.set_default_timeout(PATIENCE)
        if self._cookies:
            page.context.add_cookies(self._cookies)
        else:
            self.log_in(page)
            page.wait_for_url(f"**{STACKS}")
            self._cookies = list(page.context.cookies())
        page.goto(self.horizon.url + path)
        return page


def dialog(page: Page, title: str) -> Locator:
    """The dialog of this title, once it is there."""
    modal = page.locator(".modal").filter(has=page.get_by_role("heading", name=title, exact=True))
    expect(modal).to_be_visible()
    return modal


def choose(form: Locator, label: str, option: str) -> None:
    """Choose an option by its text; Horizon hides the browser's own lists behind buttons."""
    box = form.locator(".form-group").filter(has_text=re.compile(rf"^\s*{re.escape(label)}"))
    box.get_by_role("button").click()
    box.locator(".dropdown-menu a").get_by_text(option, exact=True).click()


def give_text(form: Locator, template: str, environment: str = "") -> None:
    """Enter a template by direct input, and an environment, in the first of two dialogs; go to the second."""
    choose(form, "Template Source", "Direct Input")
    form.get_by_label("Template Data").fill(template)
    if environment:
        choose(form, "Environment Source", "Direct Input")
        form.get_by_label("Environment Data").fill(environment)
    press(form, "Next")


def give_files(form: Locator, template: pathlib.Path, environment: pathlib.Path) -> None:
    """Upload both files in the first of the two dialogs; go to the second."""
    form.get_by_label("Template File").set_input_files(template)
    form.get_by_label("Environment File").set_input_files(environment)
    press(form, "Next")


def press(form: Locator, button: str) -> None:
    """Press a button at the end of a dialog."""
    end = form.locator(".modal-footer")
    end.get_by_role("button", name=button).or_(end.locator("a").get_by_text(button, exact=True)).click()


def field(form: Locator, parameter: str) -> Locator:
    """Return the field for a parameter's value."""
    return form.locator(f"[name='__param_{parameter}']")


def row(page: Page, name: str) -> Locator:
    """The row of a stack in the list."""
    return page.locator("#stacks tbody tr").filter(has=page.get_by_role("link", name=name, exact=True))


def act(page: Page, name: str, action: str) -> Locator:
    """Let a stack's row do something, by the list of its actions; its row, in the list that comes."""
    line = row(page, name)
    line.locator(".dropdown-toggle").click()
    line.get_by_text(action, exact=True).click()
    return row(page, name)


def confirm(page: Page, action: str) -> None:
    """Confirm what Horizon asks for."""
    press(dialog(page, f"Confirm {action}"), action)


def select(page: Page, *names: str) -> None:
    """Tick stacks in the list."""
    for name in names:
        row(page, name).locator(".themable-checkbox label").click()


def tab(page: Page, name: str) -> Locator:
    """Open a tab of a stack's page; what it shows."""
    page.locator(".nav-tabs a").get_by_text(name, exact=True).click()
    return page.locator(".tab-pane.active")


def choose_filter(page: Page, kind: str) -> None:
    """Choose by what the list is filtered."""
    box = page.locator(".table_search")
    box.locator(".dropdown-toggle").click()
    box.locator(".dropdown-menu a").get_by_text(kind).click()


def drop(page: Page, icon: str) -> None:
    """Drag the icon of a type onto the generator's canvas, and open the form of the new resource."""
    data = page.evaluate_handle("new DataTransfer()")
    page.dispatch_event(f"#{icon}", "dragstart", {"dataTransfer": data})
    page.dispatch_event("#canvas_area", "drop", {"dataTransfer": data})
    page.dispatch_event(f"#{icon}", "dragend")
    # Its old vis.js has divided by the width of the canvas, which was hidden at first, and draws nothing.
    page.evaluate(
        """() => {
            const network = angular.element("#canvas_area").scope().network;
            const frame = network.canvas.frame.canvas;
            network.body.view.scale = 1;
            network.body.view.translation = {x: frame.clientWidth / 2, y: frame.clientHeight / 2};
            network.redraw();
        }"""
    )
    page.locator("#canvas_area canvas").click()
