"""The console behind a real Keystone: who may log in, and what they see."""

import dataclasses
import re
from collections.abc import Iterator

import pytest
from client.serving import Service, fault
from harness.browser import Browser, shoot
from harness.keystone import PASSWORD, Keystone
from harness.templates import flat
from playwright.sync_api import Page, expect

from console.gated_proxy import GatedProxy

pytestmark = pytest.mark.full


@dataclasses.dataclass
class Guarded:
    """Stoker behind Keystone, with the ids of its projects."""

    service: Service
    keystone: Keystone
    projects: dict[str, str]

    def log_in(
        self,
        page: Page,
        user: str,
        password: str = PASSWORD,
        project: str | None = None,
        *,
        root: str | None = None,
    ) -> None:
        """Fill in the form, and send it; `root` is another address of the service."""
        page.goto(f"{root or self.service.url}/console/")
        page.get_by_label("User", exact=True).fill(user)
        page.get_by_label("Password", exact=True).fill(password)
        if project:
            page.get_by_label("Project", exact=True).fill(project)
        page.get_by_role("button", name="Log in").click()


_USERS = (("both", ("red", "blue")), ("red-only", ("red",)), ("many-only", ("many",)), ("nobody", ()))


@pytest.fixture(scope="module")
def guarded(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    projects = {
        name: keystone.make("project", name=name, domain_id="default") for name in ("red", "blue", "many")
    }
    for user, granted in _USERS:
        user_id = keystone.make("user", name=user, domain_id="default", password=PASSWORD)
        for project in granted:
            keystone.grant(user_id, projects[project], "member")
    config = folder / "keystone.conf"
    config.write_text(
        "[api]\nauth_strategy = keystone\nmax_page = 2\n"
        f"[keystone_authtoken]\nauth_type = password\nauth_url = {keystone.url}\nusername = admin\n"
        f"password = {PASSWORD}\nproject_name = admin\n"
        "user_domain_id = default\nproject_domain_id = default\n"
    )
    service = Service(folder, conductors=1, config=config)
    yield Guarded(service, keystone, projects)
    service.stop()


def test_a_user_logs_in_and_changes_the_project(guarded: Guarded, browser: Browser) -> None:
    token = guarded.keystone.token("both", "blue")
    body = {"stack_name": "in-blue", "template": flat(1)}
    path = f"/v1/{guarded.projects['blue']}/stacks"
    assert guarded.service.call("POST", path, body, headers={"X-Auth-Token": token}).status == 201

    page = browser.page()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url))
    guarded.log_in(page, "both")
    expect(page.get_by_role("heading", name="Choose a project")).to_be_visible()
    page.get_by_role("button", name="red").click()
    expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()
    page.get_by_label("Project").select_option("blue")
    expect(page.locator("tbody tr")).to_contain_text("in-blue")
    page.reload()
    expect(page.locator("tbody tr")).to_contain_text("in-blue")

    session = page.evaluate("JSON.parse(sessionStorage.getItem('stoker.session')).token")
    assert session
    assert not [url for url in [*sent, page.url] if session in url]
    stored = page.evaluate("JSON.stringify(localStorage) + document.cookie")
    assert session not in stored
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_role("button", name="Log in")).to_be_visible()
    assert page.evaluate("sessionStorage.length") == 0


def test_a_wrong_password_is_refused_in_words(guarded: Guarded, browser: Browser) -> None:
    page = browser.page()
    guarded.log_in(page, "both", "wrong")
    expect(page.get_by_role("alert")).to_contain_text("Login refused")
    shoot(page, "login")
    guarded.log_in(page, "red-only", project="blue")
    expect(page.get_by_role("alert")).to_contain_text("Login refused")
    guarded.log_in(page, "nobody")
    expect(page.get_by_text("You have a role in no project.")).to_be_visible()


def test_a_token_logs_in_too_and_a_member_sees_no_ring(guarded: Guarded, browser: Browser) -> None:
    page = browser.page()
    page.goto(f"{guarded.service.url}/console/")
    page.get_by_role("button", name="Use a token instead").click()
    page.get_by_label("Token").fill(guarded.keystone.token("red-only", "red"))
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Stacks")).to_be_visible()
    expect(page.get_by_text("red-only")).to_be_visible()
    expect(page.get_by_role("link", name="Ring")).to_have_count(0)


def test_an_admin_sees_the_ring(guarded: Guarded, browser: Browser) -> None:
    page = browser.page()
    guarded.log_in(page, "admin", project="admin")
    page.get_by_role("link", name="Ring").click()
    expect(page.locator("tbody tr")).to_contain_text("conductor-1")


def test_of_more_stacks_than_a_page_the_numbers_of_all_are_said(guarded: Guarded, browser: Browser) -> None:
    headers = {"X-Auth-Token": guarded.keystone.token("many-only", "many")}
    path = f"/v1/{guarded.projects['many']}/stacks"
    for number in range(3):
        body = {"stack_name": f"s{number}", "template": flat(1)}
        assert guarded.service.call("POST", path, body, headers=headers).status == 201
    page = browser.page()
    guarded.log_in(page, "many-only")
    expect(page.locator("tbody tr")).to_have_count(2)
    expect(page.get_by_text("The latest 2 of 3 stacks are shown")).to_be_visible()


def test_an_api_that_is_cut_is_no_reason_to_log_in_again(guarded: Guarded, browser: Browser) -> None:
    proxy = GatedProxy(guarded.service.url)
    try:
        proxy.faulty.set()
        page = browser.page(width=400, height=800)
        guarded.log_in(page, "red-only", project="red", root=proxy.url)
        failed = page.get_by_role("alert").filter(has_text="The stacks could not be read")
        expect(failed).to_be_visible()
        shoot(page, "failed-phone")
        expect(page.get_by_text("no stacks yet")).to_have_count(0)
        proxy.faulty.clear()
        page.get_by_role("button", name="Try again").click()
        expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()
        expect(page.get_by_text("red-only")).to_be_visible()
    finally:
        proxy.close()


def test_an_expired_login_asks_again_on_the_same_page(guarded: Guarded, browser: Browser) -> None:
    page = browser.page()
    guarded.log_in(page, "red-only", project="red")
    expect(page.get_by_text("This project has no stacks yet.")).to_be_visible()
    page.evaluate(
        """() => {
            const session = JSON.parse(sessionStorage.getItem("stoker.session"));
            sessionStorage.setItem("stoker.session", JSON.stringify({ ...session, token: "expired" }));
        }"""
    )
    page.goto(f"{guarded.service.url}/console/#/launch")
    page.reload()
    expect(page.get_by_role("alert")).to_contain_text("Your login has expired")
    assert page.url.endswith("#/launch")


def test_a_login_is_refused_as_the_api_refuses(guarded: Guarded) -> None:
    both = {"username": "both", "password": "wrong", "token": "x"}
    assert fault(guarded.service.call("POST", "/console/login", both)) == (400, "HTTPBadRequest")
    refused = guarded.service.call("POST", "/console/login", {"token": "nonsense"})
    assert fault(refused) == (401, "Unauthorized")
    assert refused.headers["Cache-Control"] == "no-store"
    assert re.match("Login refused", refused.error["message"])
