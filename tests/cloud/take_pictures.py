"""Takes the pictures of the examples: creates each on the tests' cloud, and opens its graph in the console.

Usage:
    make pictures                     all of them, in doc/images/examples
    make pictures ONLY="drift server" some of them
    STOKER_TEST_CLOUD=DIRECTORY       uses a cloud that runs (`make cloud`)

The pictures are of the format WebP, which takes a third of PNG.
"""

import argparse
import base64
import contextlib
import pathlib
import re
import sys
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
from playwright.sync_api import Page, expect

Json = typing.Any
IMAGES = pathlib.Path(__file__).parents[2] / "doc" / "images" / "examples"
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


def take(cloud: Cloud, service: Service, browser: Browser, name: str) -> pathlib.Path:
    """Create the stack of an example in a project of its own, and take its picture; return the file."""
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
            return _store(page, name)
        finally:
            stacks.clean()


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
    page.goto(f"{service.url}/console/#{stack.path.replace('/stacks/', '/stack/')}/graph")
    expect(page.locator("main .title .badge").first).to_have_text(ENDS)
    expect(page.locator(".graph .node").first).to_be_visible()
    unfold = page.get_by_role("button", name="Unfold all")
    if unfold.is_visible():
        unfold.click()
        if page.locator(".graph .far path").count():  # Boxes without names.
            page.get_by_role("button", name="Fold all").click()
            expect(page.locator(".graph .node").first).to_be_visible()


def _store(page: Page, name: str) -> pathlib.Path:
    session = page.context.new_cdp_session(page)
    graph = page.locator(".graph").bounding_box()
    assert graph, "the page has no graph"
    height = min(HEIGHT, graph["y"] + graph["height"] + MARGIN)
    clip = {"x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1}
    answer = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY, "clip": clip})
    picture = base64.b64decode(answer["data"])
    assert len(picture) <= MOST_BYTES, f"{name} has {len(picture)} bytes"
    path = IMAGES / f"{name}.webp"
    path.write_bytes(picture)
    return path


def main() -> int:
    """Take the pictures; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*names(), []], help="examples (default: all)")
    chosen: Sequence[str] = parser.parse_args().names or names()
    IMAGES.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        cloud, service = stack.enter_context(cloud_and_stoker())
        browser = stack.enter_context(Browser())
        for name in chosen:
            path = take(cloud, service, browser, name)
            print(f"{path.name}: {path.stat().st_size} bytes", flush=True)
        troubles = browser.close_pages()
    print("\n".join(troubles), file=sys.stderr)
    return 1 if troubles else 0


if __name__ == "__main__":
    sys.exit(main())
