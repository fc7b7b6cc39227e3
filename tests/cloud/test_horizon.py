"""Horizon with Heat's dashboard, both unmodified, in front of Stoker: what users do there, in a browser."""

import pathlib
import re
import typing
from collections.abc import Iterator

import pytest
import yaml
from client.serving import Service
from harness.browser import SCREENSHOTS, Browser, shoot
from harness.cloud.access import Cloud
from harness.cloud.pool import ProjectPool
from harness.cloud.project import Project
from harness.cloud.stacks import Stacks
from harness.horizon.pages import (
    STACKS,
    Answers,
    Dashboard,
    act,
    choose_filter,
    confirm,
    dialog,
    drop,
    field,
    give_files,
    give_text,
    press,
    row,
    select,
    tab,
)
from harness.horizon.server import Horizon
from harness.templates import flat, one, template
from playwright.sync_api import expect

Json = typing.Any
SECRET = "hidden-in-all-pages"
PARAMETERS: Json = {
    "text": {
        "type": "string",
        "label": "The text",
        "description": "Some <text>.",
        "default": "hello",
        "constraints": [{"length": {"min": 2, "max": 10}}, {"allowed_pattern": "[a-z]+"}],
    },
    "secret": {"type": "string", "hidden": True, "default": "of the template"},
    "number": {"type": "number", "default": 2, "constraints": [{"range": {"min": 1, "max": 3}}]},
    "list": {"type": "comma_delimited_list", "default": "a,b"},
    "map": {"type": "json", "default": {"key": [1, 2]}},
    "flag": {"type": "boolean", "default": True},
    "choice": {"type": "string", "default": "two", "constraints": [{"allowed_values": ["one", "two"]}]},
    "network": {"type": "string", "constraints": [{"custom_constraint": "neutron.network"}]},
    "key": {"type": "string", "constraints": [{"custom_constraint": "nova.keypair"}]},
    "image": {"type": "string", "constraints": [{"custom_constraint": "glance.image"}]},
    "flavor": {"type": "string", "constraints": [{"custom_constraint": "nova.flavor"}]},
}
FORM = template(
    {"kept": one(value={"get_param": "text"}), "hidden": one(value={"get_param": "secret"})},
    description="A form",
    parameters=PARAMETERS,
    outputs={name: {"value": {"get_param": name}} for name in PARAMETERS if name != "secret"},
)
NESTED = template(
    {
        "first": {**one(value="v"), "metadata": {"color": "blue"}},
        "second": {**one(value={"get_attr": ["first", "output"]})},
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 2, "resource_def": one(value="%index%")},
        },
    }
)


@pytest.fixture(scope="module")
def project(projects: ProjectPool) -> Iterator[Project]:
    """A project with what users choose from."""
    with projects.lent() as lent:
        network = lent.connection.network.create_network(name="private")
        lent.connection.network.create_subnet(
            network_id=network.id, name="private", ip_version=4, cidr="10.3.0.0/24"
        )
        lent.connection.compute.create_keypair(name="mine")
        yield lent


@pytest.fixture(scope="module")
def horizon(cloud: Cloud, stoker: Service) -> Iterator[Horizon]:
    """Horizon, which finds Stoker in the service catalog as it would find Heat."""
    url = f"{stoker.url}/v1/%(project_id)s"
    with cloud.registered("orchestration", url), Horizon(cloud.auth_url) as running:
        yield running


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with Browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def everyday(horizon: Horizon, chromium: Browser, project: Project, stoker: Service) -> Dashboard:
    return Dashboard(horizon, chromium, project.name, Answers(stoker))


@pytest.fixture
def dashboard(everyday: Dashboard, stacks: Stacks) -> Iterator[Dashboard]:
    """Horizon; at the end no page, not Horizon, and none of its requests to Stoker may have failed."""
    everyday.answers.new()
    yield everyday
    assert everyday.browser.close_pages() == []
    assert everyday.refused() == []
    assert everyday.horizon.troubles() == []


@pytest.mark.commit
def test_a_user_logs_in_and_finds_the_panels(dashboard: Dashboard) -> None:
    page = dashboard.browser.page()
    dashboard.log_in(page, "wrong")
    expect(page.get_by_text("Invalid credentials.")).to_be_visible()
    page = dashboard.open()
    panels = page.locator("#sidebar-accordion").get_by_role("link")
    for panel in ("Stacks", "Resource Types", "Template Versions", "Template Generator"):
        expect(panels.get_by_text(panel)).to_be_visible()
    expect(page.get_by_text("No items to display.")).to_be_visible()


def test_a_stack_is_launched_by_a_form_with_each_type_of_parameter(
    dashboard: Dashboard, stacks: Stacks, cloud: Cloud
) -> None:
    page = dashboard.open()
    page.get_by_role("link", name="Launch Stack").click()
    give_text(dialog(page, "Select Template"), yaml.safe_dump(FORM), "parameter_defaults: {choice: one}")
    form = dialog(page, "Launch Stack")
    expect(form.get_by_label("The text")).to_have_value("hello")
    for name, value in {"number": "2", "list": "a,b", "map": '{"key": [1, 2]}'}.items():
        expect(field(form, name)).to_have_value(value)
    expect(field(form, "text")).to_have_attribute("maxlength", "10")
    expect(field(form, "number")).to_have_attribute("max", "3")
    expect(field(form, "secret")).to_have_attribute("type", "password")
    expect(field(form, "secret")).to_have_value("of the template")
    expect(field(form, "flag")).to_be_checked()
    choices = {name: field(form, name).locator("option").all_inner_texts() for name in FORM["parameters"]}
    assert choices["choice"] == ["one", "two"]
    expect(field(form, "choice")).to_have_value("one")
    assert (choices["network"], choices["key"]) == (["private"], ["mine"])
    assert choices["image"] == ["cirros (15\xa0bytes)"]
    assert "m1.tiny" in choices["flavor"]
    shoot(page, "horizon-launch")

    form.get_by_label("Stack Name").fill("formed")
    form.get_by_label("The text").fill("Wrong")
    press(form, "Launch")
    expect(page.locator(".alert-danger, .has-error").first).to_contain_text("[a-z]+")
    shoot(page, "horizon-refused")
    assert dashboard.refused(expected=True) == [("POST", "/v1/{tenant_id}/stacks", 400)]

    form = dialog(page, "Launch Stack")
    form.get_by_label("The text").fill("world")
    field(form, "secret").fill(SECRET)
    field(form, "list").fill("c,d,e")
    field(form, "map").fill('{"key": {"deep": true}}')
    form.locator("label[for=id___param_flag]").click()
    field(form, "flavor").select_option("m1.small")
    press(form, "Launch")
    expect(row(page, "formed")).to_contain_text("Create Complete")
    shoot(page, "horizon-stacks")

    (stack,) = stacks.all()
    small = cloud.admin.compute.find_flavor("m1.small")
    outputs = stack.outputs()
    assert outputs["flavor"] == small.id
    assert (outputs["list"], outputs["map"], outputs["flag"]) == (
        ["c", "d", "e"],
        {"key": {"deep": True}},
        False,
    )
    assert (outputs["text"], outputs["number"], outputs["choice"]) == ("world", 2, "one")

    row(page, "formed").get_by_role("link").first.click()
    page_text = tab(page, "Overview")
    for text in ("A form", "c,d,e", "Stack CREATE completed successfully", "60 Minutes", "******"):
        expect(page_text).to_contain_text(text)
    assert SECRET not in page.content()
    page.screenshot(path=SCREENSHOTS / "horizon-overview.png", full_page=True)


def test_a_stack_is_launched_from_files(dashboard: Dashboard, stacks: Stacks, tmp_path: pathlib.Path) -> None:
    template_file = tmp_path / "flat.yaml"
    environment = tmp_path / "env.yaml"
    template_file.write_text(
        yaml.safe_dump(template({"r": one(value={"get_param": "x"})}, parameters={"x": {"type": "string"}}))
    )
    environment.write_text("parameters: {x: of the file}")
    page = dashboard.open()
    page.get_by_role("link", name="Launch Stack").click()
    give_files(dialog(page, "Select Template"), template_file, environment)
    form = dialog(page, "Launch Stack")
    expect(field(form, "x")).to_have_value("of the file")
    form.get_by_label("Stack Name").fill("uploaded")
    form.get_by_text("Rollback On Failure").click()
    press(form, "Launch")
    expect(row(page, "uploaded")).to_contain_text("Create Complete")
    (stack,) = stacks.all()
    view = stack.show()
    assert (view["disable_rollback"], view["timeout_mins"], view["parameters"]["x"]) == (
        False,
        60,
        "of the file",
    )


def test_a_wrong_template_is_refused_in_its_form(dashboard: Dashboard) -> None:
    page = dashboard.open()
    page.get_by_role("link", name="Launch Stack").click()
    form = dialog(page, "Select Template")
    give_text(form, yaml.safe_dump(template({"r": {"type": "OS::No::Such"}})))
    expect(form.locator(".alert-danger")).to_contain_text("OS::No::Such")
    assert dashboard.refused(expected=True) == [("POST", "/v1/{tenant_id}/validate", 400)]
    shoot(page, "horizon-wrong-template")


def test_a_stack_shows_its_topology_resources_events_and_template(
    dashboard: Dashboard, stacks: Stacks
) -> None:
    stack = stacks.create("nested", NESTED)
    page = dashboard.open()
    row(page, "nested").get_by_role("link").first.click()
    nodes = page.locator("#heat_resource_topology .node")
    expect(nodes).to_have_count(3)
    expect(page.locator("#heat_resource_topology .link")).to_have_count(1)
    expect(page.locator("#stack_box")).to_contain_text("Create Complete")
    page.wait_for_load_state("networkidle")  # The icons of the nodes.
    shoot(page, "horizon-topology")

    text = tab(page, "Template")
    expect(text).to_contain_text("heat_template_version")
    text = tab(page, "Events")
    expect(text.locator("tbody tr")).to_have_count(8)
    expect(text.locator("tbody tr").first).to_contain_text("Stack CREATE completed successfully")
    text = tab(page, "Resources")
    expect(text.locator("tbody tr")).to_have_count(3)
    shoot(page, "horizon-resources")
    text.get_by_role("link", name="first", exact=True).click()
    expect(page.locator("dd").get_by_text("OS::Heat::TestResource")).to_be_visible()
    expect(page.locator("pre")).to_contain_text('"color": "blue"')
    shoot(page, "horizon-resource")

    page.goto(dashboard.horizon.url + f"{STACKS}stack/{stack.show()['id']}/?tab=stack_details__resources")
    group = page.locator("tbody tr").filter(has_text="OS::Heat::ResourceGroup")
    group.get_by_role("link").nth(1).click()
    expect(page.locator("#heat_resource_topology .node")).to_have_count(2)
    tab(page, "Resources").get_by_role("link", name="1", exact=True).click()
    expect(page.locator("dd").get_by_text("OS::Heat::TestResource")).to_be_visible()


def test_a_stack_that_fails_says_why(dashboard: Dashboard, stacks: Stacks) -> None:
    page = dashboard.open()
    stacks.start("broken", template({"bad": one(fail=True)})).wait("CREATE_FAILED")
    page.reload()
    expect(row(page, "broken")).to_contain_text("Create Failed")
    row(page, "broken").get_by_role("link").first.click()
    expect(page.locator("#stack_box")).to_contain_text("Create Failed")
    expect(tab(page, "Overview")).to_contain_text("Resource CREATE failed")
    expect(tab(page, "Resources").locator("tbody tr")).to_contain_text("Create Failed")


def test_a_preview_shows_what_would_be_made(dashboard: Dashboard, stacks: Stacks) -> None:
    page = dashboard.open()
    page.get_by_role("link", name="Preview Stack").click()
    # The dashboard's form has no parameters here, so each needs a default.
    values = {name: schema for name, schema in PARAMETERS.items() if "default" in schema}
    give_text(dialog(page, "Preview Template"), yaml.safe_dump({**FORM, "parameters": values, "outputs": {}}))
    form = dialog(page, "Preview Stack")
    form.get_by_label("Stack Name").fill("would-be")
    press(form, "Preview")
    page_text = dialog(page, "Stack Preview")
    for text in ("would-be", "kept", "OS::Heat::TestResource", "******"):
        expect(page_text.get_by_text(text, exact=True).first).to_be_visible()
    assert "of the template" not in page_text.inner_text()
    shoot(page, "horizon-preview")
    assert stacks.all() == []


def test_a_stack_is_changed_by_a_new_template(dashboard: Dashboard, stacks: Stacks) -> None:
    stack = stacks.create("changed", template({"old": one(), "same": one()}))
    page = dashboard.open()
    act(page, "changed", "Change Stack Template")
    body = template(
        {"new": one(value={"get_param": "x"}), "same": one()},
        parameters={"x": {"type": "string", "default": "d"}},
    )
    give_text(dialog(page, "Change Template"), yaml.safe_dump(body))
    form = dialog(page, "Update Stack")
    expect(form.get_by_label("Stack Name")).to_have_value("changed")
    field(form, "x").fill("changed here")
    press(form, "Update")
    expect(row(page, "changed")).to_contain_text("Update Complete")
    assert sorted(stack.resources()) == ["new", "same"]
    assert stack.show()["parameters"]["x"] == "changed here"


def test_stacks_are_suspended_resumed_checked_and_deleted(dashboard: Dashboard, stacks: Stacks) -> None:
    for name in ("one", "two", "three"):
        stacks.create(name, flat(2, wait_secs=1))
    page = dashboard.open()
    expect(act(page, "one", "Suspend Stack")).to_contain_text("Suspend Complete")
    expect(act(page, "one", "Resume Stack")).to_contain_text("Resume Complete")

    select(page, "two", "three")
    page.get_by_role("link", name="More Actions").click()
    page.get_by_role("button", name="Check Stacks").click()
    for name in ("two", "three"):
        expect(row(page, name)).to_contain_text("Check Complete")
    shoot(page, "horizon-checked")

    act(page, "one", "Delete Stack")
    confirm(page, "Delete Stack")
    expect(row(page, "one")).to_have_count(0)
    select(page, "two", "three")
    page.get_by_role("button", name="Delete Stacks").click()
    confirm(page, "Delete Stacks")
    expect(page.get_by_text("No items to display.")).to_be_visible()
    assert stacks.all() == []
    assert set(dashboard.refused(expected=True)) <= {("GET", "/v1/{tenant_id}/stacks/{stack_name}", 404)}


def test_the_list_is_filtered_and_has_pages(dashboard: Dashboard, stacks: Stacks) -> None:
    stacks_by_name = {name: stacks.create(name, flat(1)) for name in ("ants", "bees", "crows")}
    page = dashboard.open()
    filters = page.locator(".table_search")
    for kind, value in (("Stack Name =", "bees"), ("Stack ID =", stacks_by_name["bees"].show()["id"])):
        choose_filter(page, kind)
        filters.get_by_role("textbox").fill(value)
        filters.get_by_role("button", name="Filter").click()
        expect(page.locator("#stacks tbody tr")).to_have_count(1)
        expect(row(page, "bees")).to_be_visible()
    choose_filter(page, "Status =")
    filters.get_by_role("textbox").fill("Complete")
    filters.get_by_role("button", name="Filter").click()
    expect(page.locator("#stacks tbody tr")).to_have_count(3)
    filters.get_by_role("textbox").fill("")
    filters.get_by_role("button", name="Filter").click()

    page.context.add_cookies([{"name": "API_RESULT_PAGE_SIZE", "value": "2", "url": dashboard.horizon.url}])
    page.goto(dashboard.horizon.url + STACKS)
    rows = page.locator("#stacks tbody tr")
    expect(rows).to_have_count(2)
    page.locator("a[href*=stack_marker]").first.click()
    expect(rows).to_have_count(1)
    expect(row(page, "ants")).to_be_visible()
    page.locator("a[href*=prev_marker]").first.click()
    expect(rows).to_have_count(2)
    row(page, "crows").get_by_role("link").first.click()
    events = tab(page, "Events").locator("tbody tr")
    expect(events).to_have_count(2)
    expect(events.first).to_contain_text("Stack CREATE completed")
    page.locator("a[href*=event_marker]").first.click()
    expect(page.locator(".tab-pane.active tbody tr").last).to_contain_text("Stack CREATE started")


def test_types_versions_and_functions_are_listed(dashboard: Dashboard) -> None:
    page = dashboard.open("/project/resource_types/")
    expect(page.get_by_role("link", name="OS::Nova::Server", exact=True)).to_be_visible()
    search = page.locator(".table_search")
    search.get_by_role("textbox").fill("Heat::Resource")
    search.get_by_role("button", name="Filter").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    page.get_by_role("link", name="OS::Heat::ResourceGroup").click()
    expect(page.locator("pre").first).to_contain_text("refs_map")
    expect(page.locator("pre").nth(1)).to_contain_text("resource_def")
    shoot(page, "horizon-type")

    page = dashboard.open("/project/template_versions/")
    page.get_by_role("link", name="heat_template_version.2018-08-31", exact=True).click()
    expect(page.locator("tbody tr").filter(has_text="get_attr")).to_have_count(1)
    shoot(page, "horizon-functions")


def test_the_generator_makes_a_template_that_launches(
    dashboard: Dashboard, stacks: Stacks, project: Project
) -> None:
    page = dashboard.open("/project/template_generator/")
    page.get_by_label("Template Version").click()
    page.get_by_role("option", name="heat_template_version.2018-08-31").click()
    drop(page, "OS__Cinder__Volume")
    form = page.locator("md-dialog")
    expect(form).to_contain_text("Resource OS::Cinder::Volume")
    shoot(page, "horizon-generator")
    form.get_by_label("Name").fill("generated")
    form.locator("[name=size]").fill("1")
    form.get_by_role("button", name="Save").click()
    expect(form).to_have_count(0)
    page.get_by_role("button", name="Template Generator").click()
    expect(form.locator("textarea")).to_have_value(re.compile("OS::Cinder::Volume"))
    form.get_by_role("button", name="Create Stack").click()
    form = dialog(page, "Select Template")
    expect(form.get_by_label("Template Data")).to_have_value(re.compile("OS::Cinder::Volume"))
    press(form, "Next")
    form = dialog(page, "Launch Stack")
    form.get_by_label("Stack Name").fill("of-the-generator")
    press(form, "Launch")
    expect(row(page, "of-the-generator")).to_contain_text("Create Complete")
    (stack,) = stacks.all()
    (volume,) = project.connection.block_storage.volumes()
    assert (stack.physical_id("Volume_1"), volume.name, volume.size) == (volume.id, "generated", 1)
