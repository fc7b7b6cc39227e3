"""Chromium, driven by Playwright, as the tests of the console use it."""

import pathlib
import types
import typing

from harness.server import find_program
from playwright.sync_api import BrowserContext, Page, Playwright, sync_playwright

SCREENSHOTS = pathlib.Path(__file__).parents[2] / "var" / "screenshots"
"""Where the pictures of a run are kept; git ignores the folder."""
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PATIENCE = 60_000
"""Milliseconds for which a test waits for what it means."""


class _Driver:
    """Playwright, of which a process may run one only, for all browsers; it ends with the last of them."""

    def __init__(self) -> None:
        self._users = 0
        self._running: Playwright | None = None

    def join(self) -> Playwright:
        self._running = self._running or sync_playwright().start()
        self._users += 1
        return self._running

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self._running:
            self._running.stop()
            self._running = None


_DRIVER = _Driver()


class Browser:
    """One browser; each test has contexts of its own, which share nothing."""

    def __init__(self) -> None:
        program = find_program("chromium", "chromium")
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self._browser = _DRIVER.join().chromium.launch(
            executable_path=program, args=[*FLAGS], headless=True, timeout=180_000
        )
        self._contexts: list[BrowserContext] = []
        self.troubles: list[str] = []

    def __enter__(self) -> "Browser":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: types.TracebackType | None,
    ) -> None:
        self._browser.close()
        _DRIVER.leave()

    def page(self, *, width: int = 1280, height: int = 860, dark: bool = False) -> Page:
        """A page of a new user; what goes wrong in it is in `troubles`."""
        scheme: typing.Literal["dark", "light"] = "dark" if dark else "light"
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE)
        self._contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("dialog", lambda dialog: self.troubles.append(f"a dialog: {dialog.message}"))
        page.on("console", lambda message: self._note(message.type, message.text))
        return page

    def _note(self, kind: str, text: str) -> None:
        # Chromium reports each answer of 400 or more; the pages show those themselves.
        if kind == "error" and not text.startswith("Failed to load resource"):
            self.troubles.append(text)

    def close_pages(self) -> list[str]:
        """Close all pages; return what went wrong in them."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()
        troubles = self.troubles
        self.troubles = []
        return troubles


def shoot(page: Page, name: str) -> None:
    """Keep a picture of the page."""
    page.screenshot(path=SCREENSHOTS / f"{name}.png")
