"""The files of the console, and the headers that protect them."""

import pathlib
import re

import pytest
from client.serving import Service, fault

STATIC = pathlib.Path(__file__).parents[2] / "console" / "page"


@pytest.mark.parametrize("name", ["", *sorted(path.name for path in STATIC.iterdir())])
def test_each_file_is_served_with_headers_that_protect_it(service: Service, name: str) -> None:
    answer = service.call("GET", f"/console/{name}")
    assert answer.status == 200
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert (
        service.call("GET", f"/console/{name}", headers={"If-None-Match": answer.headers["ETag"]}).status
        == 304
    )


def test_the_folder_is_named_with_a_slash(service: Service) -> None:
    answer = service.call("GET", "/console")
    assert (answer.status, answer.headers["Location"]) == (302, f"{service.url}/console/")


@pytest.mark.parametrize("path", ["", "/", "/console.css", "/settings", "/nothing.js"])
def test_head_answers_as_get_without_the_body(service: Service, path: str) -> None:
    page, head = (service.call(method, f"/console{path}") for method in ("GET", "HEAD"))
    assert head.status == page.status
    assert head.body is None
    names = page.headers.keys() - {"Date", "X-Openstack-Request-Id"}
    assert {name: head.headers.get(name) for name in names} == {name: page.headers[name] for name in names}


def test_head_is_not_allowed_where_only_post_is(service: Service) -> None:
    assert service.call("HEAD", "/console/login").status == service.call("GET", "/console/login").status


@pytest.mark.parametrize("name", ["nothing.js", "..%2fconsole.py", "__init__.py", "%2e%2e"])
def test_nothing_else_is_served(service: Service, name: str) -> None:
    assert fault(service.call("GET", f"/console/{name}")) == (404, "EntityNotFound")


def test_without_keystone_nobody_logs_in(service: Service) -> None:
    assert service.get("/console/settings")["auth"] == "none"
    assert service.call("POST", "/console/login", {"token": "x"}).status == 405


def test_the_console_can_be_turned_off(tmp_path: pathlib.Path) -> None:
    config = tmp_path / "off.conf"
    config.write_text("[api]\nconsole = false\n")
    running = Service(tmp_path, conductors=1, config=config)
    try:
        assert fault(running.call("GET", "/console/")) == (404, "EntityNotFound")
    finally:
        running.stop()


@pytest.mark.parametrize("path", sorted(STATIC.glob("*.js")), ids=lambda path: path.name)
def test_no_module_makes_markup_of_texts(path: pathlib.Path) -> None:
    text = path.read_text()
    for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"):
        assert sink not in text
    assert len(text.splitlines()) <= 500


def test_each_imported_module_exists() -> None:
    for path in STATIC.glob("*.js"):
        for name in re.findall(r'from "\./([\w.]+)"', path.read_text()):
            assert (STATIC / name).exists(), (path.name, name)
