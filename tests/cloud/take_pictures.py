"""Takes the pictures of the console: creates stacks, and opens their graphs in light and in dark colours.

Usage:
    make pictures                     all of them, in doc/images.
    make pictures ONLY="drift server" some of the examples
    make pictures ONLY=console        those of the console, which need no cloud.
    make pictures ONLY=preflight      that of the findings of a preflight
    STOKER_TEST_CLOUD=DIRECTORY       uses a cloud that runs (`make cloud`)

The pictures are of the format WebP, which takes a third of PNG.  The dark one has the name `NAME-dark.webp`.
"""

import argparse
import base64
import contextlib
import json
import pathlib
import re
import sys
import tempfile
import typing
from collections.abc import Mapping, Sequence

from client.serving import PATIENT, Service
from harness.browser import Browser
from harness.cloud.access import Cloud
from harness.cloud.layout import PASSWORD
from harness.cloud.project import Project
from harness.cloud.stacks import Stack, Stacks
from harness.cloud.stoker import cloud_and_stoker
from harness.examples import example, names
from harness.telemetry import Telemetry
from harness.templates import one, template
from harness.waiting import wait_for
from playwright.sync_api import Page, expect

Json = typing.Any
IMAGES = pathlib.Path(__file__).parents[2] / "doc" / "images"
CONSOLE = "console"
"""The name of all pictures of the console's views."""
PREFLIGHT = "preflight"
"""The name of the picture of what a preflight finds."""
SHOP = pathlib.Path(__file__).parents[1] / "console" / "shop.yaml"
"""The stack of these pictures."""
PROJECT = "demo"
SCHEMES: Sequence[tuple[typing.Literal["light", "dark"], str]] = (("light", ""), ("dark", "-dark"))
"""Each colour scheme with what the names of its pictures end in."""
MOST_BYTES = 60_000
QUALITY = 80
"""The quality of WebP, up to 100."""
WIDTH, HEIGHT = 1200, 860
MARGIN = 24
"""Pixels below the graph."""
SERVICES: Mapping[str, str] = {"autoscaling": "aodh", "load_balancer": "octavia", "secrets": "barbican"}
"""The service of an example that a cloud of the tests starts when it is asked to."""
PARAMETERS: Mapping[str, Mapping[str, Json]] = {
    # This Octavia makes no port for its address, so no floating IP can lead there.
    "load_balancer": {"with_floating_ip": False},
    # No server of the tests' cloud runs the agents, which would signal.
    "software_cluster": {"transport": "NO_SIGNAL"},
}
ALL: Sequence[str] = (CONSOLE, PREFLIGHT, *names())
ENDS = re.compile("complete|held", re.IGNORECASE)
"""States in which an example is shown: it is complete, or held at its breakpoint."""


def take(cloud: Cloud, service: Service, browser: Browser, name: str) -> Sequence[pathlib.Path]:
    """Create the stack of an example in a project of its own, and take its pictures; return the files."""
    if name in SERVICES:
        cloud.start(SERVICES[name])
    with cloud.project() as project:
        stacks = Stacks(service, project)
        if name == "autoscaling":
            # It lets Gnocchi know the servers, as Ceilometer does.
            Telemetry(cloud, project)
        try:
            stack = stacks.start(name, **example(name, **PARAMETERS.get(name, {})))
            stacks.wait_for(lambda: _is_at_rest(stack), lambda: str(stack.show()))
            page = browser.page(width=WIDTH, height=HEIGHT)
            _open(page, service, project, stack)
            return _store(page, IMAGES / "examples" / name)
        finally:
            stacks.clean()


def take_console(browser: Browser) -> Sequence[pathlib.Path]:
    """Take the pictures of the console's views, of a stack that needs no cloud; return the files."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(pathlib.Path(folder), conductors=3, env=PATIENT)
        try:
            held = {"resource_registry": {"resources": {"schema": {"hooks": "pre-create"}}}}
            path = service.create(PROJECT, "shop", SHOP.read_text(), environment=held)
            wait_for(lambda: service.get(path)["stack"].get("breakpoints"), 60)
            page = browser.page(width=1080, height=790)
            page.goto(f"{service.url}/console/")
            page.get_by_label("Project").fill(PROJECT)
            page.get_by_role("button", name="Open").click()
            page.locator("#top nav").wait_for()
            _show_graph(page, service, path)
            graph = _store(page, IMAGES / f"{CONSOLE}-graph")
            complete = service.created(PROJECT, "tiers", _tiers())
            return [*graph, *_timeline(page, complete), *_comparison(page, complete), *_ring(page)]
        finally:
            service.stop()


def take_preflight(cloud: Cloud, service: Service, browser: Browser) -> Sequence[pathlib.Path]:
    """Compare an update that a project's cloud would not carry out; return the files."""
    with cloud.project() as project:
        stacks = Stacks(service, project)
        network = project.connection.network
        inner = network.create_network(name="inner")
        network.create_subnet(network_id=inner.id, ip_version=4, cidr="10.9.0.0/24")
        try:
            stack = stacks.create("shop", _shop(("web-1",), availability_zone="nova"))
            group = stack.physical_id("firewall")
            network.create_port(network_id=inner.id, security_groups=[group], name="of another stack")
            project.admin.set_compute_quotas(project.id, instances=2)
            changed = _shop(("web-1", "web-2", "web-3"))
            changed["resources"]["port-web-3"]["properties"]["fixed_ips"] = [{"ip_address": "10.9.1.9"}]
            del changed["resources"]["firewall"]
            page = browser.page(width=1080, height=790)
            _log_in(page, service, project)
            page.goto(f"{_console(page)}{_address(stack.path)}/update")
            return _compared(page, changed, IMAGES / PREFLIGHT, "section li.deleted", "section li.unchanged")
        finally:
            stacks.clean()


def _shop(servers: Sequence[str], **of_volume: str) -> Json:
    """Servers with a port each, a volume, and a security group."""
    resources: dict[str, Json] = {
        "firewall": {"type": "OS::Neutron::SecurityGroup"},
        "data": {"type": "OS::Cinder::Volume", "properties": {"size": 1, **of_volume}},
    }
    for name in servers:
        networks = [{"port": {"get_resource": f"port-{name}"}}]
        properties = {"image": "cirros", "flavor": "m1.tiny", "networks": networks}
        resources[name] = {"type": "OS::Nova::Server", "properties": properties}
        resources[f"port-{name}"] = {"type": "OS::Neutron::Port", "properties": {"network": "inner"}}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def _tiers() -> Json:
    """Resources that take some seconds each, so that their bars differ."""
    seconds = {"network": 1, "volume": 2, "database": 5, "schema": 2, "web": 3, "balancer": 2, "page": 1}
    after = {"database": ["network", "volume"], "schema": ["database"], "web": ["network"]}
    after |= {"balancer": ["web"], "page": ["schema", "balancer"]}
    return template(
        {
            name: {**one(value=name, wait_secs=wait), "depends_on": after.get(name, [])}
            for name, wait in seconds.items()
        }
    )


def _timeline(page: Page, path: str) -> Sequence[pathlib.Path]:
    page.goto(f"{_console(page)}{_address(path)}/timeline")
    expect(page.locator(".timeline .row.decisive")).not_to_have_count(0)
    return _store(page, IMAGES / f"{CONSOLE}-timeline", ".timeline")


def _comparison(page: Page, path: str) -> Sequence[pathlib.Path]:
    """Compare an update that creates, updates, replaces and deletes something."""
    page.goto(f"{_console(page)}{_address(path)}/update")
    changed = _tiers()
    resources = changed["resources"]
    resources["cache"] = one(value="cache")
    resources["web"]["properties"]["value"] = "web, larger"
    resources["database"]["properties"]["update_replace_value"] = "another version"
    del resources["balancer"]
    resources["page"]["depends_on"] = ["schema", "web"]
    kinds = [f"li.{kind}" for kind in ("added", "updated", "replaced", "deleted")]
    return _compared(page, changed, IMAGES / f"{CONSOLE}-compare", *kinds)


def _compared(page: Page, changed: Json, target: pathlib.Path, *shown: str) -> Sequence[pathlib.Path]:
    """Compare a stack with another template on its page; take the picture of the result."""
    source = page.get_by_label("Template", exact=True)
    expect(source).to_have_value(re.compile("resources:"))
    source.fill(json.dumps(changed))
    page.get_by_role("button", name="Compare").click()
    result = page.get_by_role("region", name="What the update would do")
    for selector in shown:
        expect(result.locator(selector)).not_to_have_count(0)
    size = page.viewport_size
    assert size
    page.set_viewport_size({"width": size["width"], "height": 3 * size["height"]})  # It shows all of it.
    box = result.bounding_box()
    assert box
    clip = {"x": 0, "y": box["y"] - MARGIN, "width": size["width"], "height": box["height"] + 2 * MARGIN}
    try:
        return _shoot(page, target, clip)
    finally:
        page.set_viewport_size(size)


def _ring(page: Page) -> Sequence[pathlib.Path]:
    page.goto(f"{_console(page)}#/ring")
    expect(page.get_by_role("link", name="conductor-3").first).to_be_visible()
    return _store(page, IMAGES / f"{CONSOLE}-ring", "main")


def _console(page: Page) -> str:
    return page.url.partition("#")[0]


def _address(path: str) -> str:
    """The address of a stack's page."""
    return "#/stack/" + "/".join(path.rsplit("/", 2)[1:])


def _is_at_rest(stack: Stack) -> bool:
    """Return whether the stack is complete, or held."""
    view = stack.show()
    status = view["stack_status"]
    assert not status.endswith("FAILED"), view["stack_status_reason"]
    return status.endswith("COMPLETE") or bool(view.get("breakpoints"))


def _open(page: Page, service: Service, project: Project, stack: Stack) -> None:
    """Log in, and wait until the graph has all resources in their states."""
    _log_in(page, service, project)
    _show_graph(page, service, stack.path)


def _log_in(page: Page, service: Service, project: Project) -> None:
    """Log in as the project's user."""
    page.goto(f"{service.url}/console/")
    page.get_by_label("User", exact=True).fill(project.name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.locator("#top nav").wait_for()


def _show_graph(page: Page, service: Service, path: str) -> None:
    """Wait until the graph has all resources of the stack in their states."""
    page.goto(f"{service.url}/console/{_address(path)}/graph")
    expect(page.locator("main .title .badge").first).to_have_text(ENDS)
    expect(page.locator(".graph .node").first).to_be_visible()
    unfold = page.get_by_role("button", name="Unfold all")
    if unfold.is_visible():
        unfold.click()
        if page.locator(".graph .far path").count():  # Boxes without names.
            page.get_by_role("button", name="Fold all").click()
            expect(page.locator(".graph .node").first).to_be_visible()


def _store(page: Page, target: pathlib.Path, last: str = ".graph") -> Sequence[pathlib.Path]:
    """Write the pictures of a page, down to the end of an element, in both schemes; return the files."""
    box = page.locator(last).first.bounding_box()
    size = page.viewport_size
    assert box, f"the page has no {last}"
    assert size
    height = min(size["height"], box["y"] + box["height"] + MARGIN)
    return _shoot(page, target, {"x": 0, "y": 0, "width": size["width"], "height": height})


def _shoot(page: Page, target: pathlib.Path, clip: Mapping[str, float]) -> Sequence[pathlib.Path]:
    """Write a part of the page in both schemes."""
    paths = []
    for scheme, end in SCHEMES:
        page.emulate_media(color_scheme=scheme)
        session = page.context.new_cdp_session(page)
        options = {"format": "webp", "quality": QUALITY, "clip": {**clip, "scale": 1}}
        picture = base64.b64decode(session.send("Page.captureScreenshot", options)["data"])
        path = target.with_name(f"{target.name}{end}.webp")
        assert len(picture) <= MOST_BYTES, f"{path.name} has {len(picture)} bytes"
        path.write_bytes(picture)
        paths.append(path)
    return paths


def _report(paths: Sequence[pathlib.Path]) -> None:
    for path in paths:
        print(f"{path.name}: {path.stat().st_size} bytes", flush=True)


def main() -> int:
    """Take the pictures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*ALL, []], help="pictures (default: all)")
    chosen: Sequence[str] = parser.parse_args().names or ALL
    with contextlib.ExitStack() as stack:
        browser = stack.enter_context(Browser())
        if CONSOLE in chosen:
            _report(take_console(browser))
        if examples := [name for name in chosen if name != CONSOLE]:
            cloud, service = stack.enter_context(cloud_and_stoker())
            for name in examples:
                is_preflight = name == PREFLIGHT
                taken = (
                    take_preflight(cloud, service, browser)
                    if is_preflight
                    else take(cloud, service, browser, name)
                )
                _report(taken)
        troubles = browser.close_pages()
    print("\n".join(troubles), file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
