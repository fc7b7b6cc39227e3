"""Takes the pictures of the console: creates stacks, and opens their graphs in light and in dark colours.

Usage:
    make pictures                     all of them, in doc/images
    make pictures ONLY="drift server" some of the examples
    make pictures ONLY=console-graph  that of README.md
    STOKER_TEST_CLOUD=DIRECTORY       uses a cloud that runs (`make cloud`)

The pictures are of the format WebP, which takes a third of PNG.  The dark one has the name `NAME-dark.webp`.
"""

import argparse
import base64
import contextlib
import pathlib
import re
import sys
import tempfile
import typing
from collections.abc import Mapping, Sequence

from client.serving import Service
from harness.browser import Browser
from harness.cloud.access import Cloud
from harness.cloud.layout import PASSWORD
from harness.cloud.project import Project
from harness.cloud.stacks import Stack, Stacks
from harness.cloud.stoker import cloud_and_stoker
from harness.examples import example, names
from harness.telemetry import Telemetry
from harness.waiting import wait_for
from playwright.sync_api import Page, expect

Json = typing.Any
IMAGES = pathlib.Path(__file__).parents[2] / "doc" / "images"
FRONT = "console-graph"
"""The picture of README.md, of the stack in `FRONT_TEMPLATE`."""
FRONT_TEMPLATE = pathlib.Path(__file__).parents[1] / "console" / "shop.yaml"
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


def take_front(browser: Browser) -> Sequence[pathlib.Path]:
    """Take the pictures of a stack that needs no cloud and is held at a breakpoint; return the files."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(pathlib.Path(folder))
        try:
            held = {"resource_registry": {"resources": {"schema": {"hooks": "pre-create"}}}}
            template = FRONT_TEMPLATE.read_text()
            path = service.create("demo", "shop", template, environment=held)
            wait_for(lambda: service.get(path)["stack"].get("breakpoints"), 60)
            page = browser.page(width=1080, height=790)
            page.goto(f"{service.url}/console/")
            page.get_by_label("Project").fill("demo")
            page.get_by_role("button", name="Open").click()
            page.locator("#top nav").wait_for()
            _show_graph(page, service, path)
            return _store(page, IMAGES / FRONT)
        finally:
            service.stop()


def _is_at_rest(stack: Stack) -> bool:
    """Return whether the stack is complete, or held."""
    view = stack.show()
    status = view["stack_status"]
    assert not status.endswith("FAILED"), view["stack_status_reason"]
    return status.endswith("COMPLETE") or bool(view.get("breakpoints"))


def _open(page: Page, service: Service, project: Project, stack: Stack) -> None:
    """Log in as the project's user, and wait until the graph has all resources in their states."""
    page.goto(f"{service.url}/console/")
    page.get_by_label("User", exact=True).fill(project.name)
    page.get_by_label("Password", exact=True).fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()
    page.locator("#top nav").wait_for()
    _show_graph(page, service, stack.path)


def _show_graph(page: Page, service: Service, path: str) -> None:
    """Wait until the graph has all resources of the stack in their states."""
    name_and_id = "/".join(path.rsplit("/", 2)[1:])
    page.goto(f"{service.url}/console/#/stack/{name_and_id}/graph")
    expect(page.locator("main .title .badge").first).to_have_text(ENDS)
    expect(page.locator(".graph .node").first).to_be_visible()
    unfold = page.get_by_role("button", name="Unfold all")
    if unfold.is_visible():
        unfold.click()
        if page.locator(".graph .far path").count():  # Boxes without names.
            page.get_by_role("button", name="Fold all").click()
            expect(page.locator(".graph .node").first).to_be_visible()


def _store(page: Page, target: pathlib.Path) -> Sequence[pathlib.Path]:
    """Write the pictures of a page, as high as its graph, in both schemes; return the files."""
    graph = page.locator(".graph").bounding_box()
    size = page.viewport_size
    assert graph, "the page has no graph"
    assert size
    height = min(size["height"], graph["y"] + graph["height"] + MARGIN)
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
    return [
        _shoot(page, scheme, clip, target.with_name(f"{target.name}{end}.webp")) for scheme, end in SCHEMES
    ]


def _shoot(
    page: Page, scheme: typing.Literal["light", "dark"], clip: Json, path: pathlib.Path
) -> pathlib.Path:
    page.emulate_media(color_scheme=scheme)
    session = page.context.new_cdp_session(page)
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "clip": clip})
    picture = base64.b64decode(answer["data"])
    assert len(picture) <= MOST_BYTES, f"{path.name} has {len(picture)} bytes"
    path.write_bytes(picture)


def _report(paths: Sequence[pathlib.Path]) -> None:
    for path in paths:
        print(f"{path.name}: {path.stat().st_size} bytes", flush=True)


def main() -> int:
    """Take the pictures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[FRONT, *names(), []], help="pictures (default: all)")
    chosen: Sequence[str] = parser.parse_args().names or [FRONT, *names()]
    with contextlib.ExitStack() as stack:
        browser = stack.enter_context(Browser())
        if FRONT in chosen:
            _report(take_front(browser))
        if examples := [name for name in chosen if name != FRONT]:
            cloud, service = stack.enter_context(cloud_and_stoker())
            for name in examples:
                _report(take(cloud, service, browser, name))
        troubles = browser.close_pages()
    print("\n".join(troubles), file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
