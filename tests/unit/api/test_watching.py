"""Records of a request: metrics by route, a line of the log, its id; nothing that a caller can spell."""

import io
import logging
import typing
from collections.abc import Iterator
from wsgiref.validate import WSGIWarning

import falcon
import pytest
from falcon.testing import TestClient
from oslo_config import cfg
from oslo_log import formatters, log
from stoker.api.app import RequestLog, request_id
from stoker.observe import metrics
from stoker.observe.logs import FORMAT
from stoker.observe.prometheus import Prometheus


class Page:
    """Answers with the id of the request; breaks where it is asked to."""

    def __init__(self, watch: RequestLog) -> None:
        self._watch = watch
        self.running: list[typing.Any] = []

    def on_get(self, req: falcon.Request, resp: falcon.Response, **path: str) -> None:
        self.running = list(self._watch.running())
        if path["stack_name"] == "broken":
            raise falcon.HTTPBadRequest
        resp.text = request_id(req)


@pytest.fixture
def recorder() -> Prometheus:
    return Prometheus(metrics.API, environment={})


@pytest.fixture
def page(recorder: Prometheus) -> Page:
    return Page(RequestLog(recorder))


@pytest.fixture
def client(page: Page) -> TestClient:
    app = falcon.App(middleware=[page._watch])
    app.add_route("/v1/{tenant_id}/stacks/{stack_name}", page)
    return TestClient(app)


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """Return the log of the API, as oslo.log writes it."""
    conf = cfg.ConfigOpts()
    log.register_options(conf)
    conf.set_default("logging_context_format_string", FORMAT)
    conf([])
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatters.ContextFormatter(config=conf))
    logger = logging.getLogger("stoker.api.app")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield written
    logger.removeHandler(handler)
    logger.setLevel(before)


def test_a_request_is_counted_and_logged_by_its_route(
    client: TestClient, recorder: Prometheus, lines: io.StringIO
) -> None:
    answer = client.simulate_get("/v1/demo/stacks/mine")
    route = "/v1/{tenant_id}/stacks/{stack_name}"
    assert f" INFO stoker.api.app [{answer.text} demo mine] GET {route} 200 " in lines.getvalue()
    client.simulate_get("/v1/demo/stacks/broken")
    client.simulate_get("/v1/other/stacks/broken")
    page_text = recorder.text().decode()
    labels = 'method="GET",route="/v1/{tenant_id}/stacks/{stack_name}"'
    assert f'stoker_api_requests_total{{{labels},status="200"}} 1.0' in page_text
    assert f'stoker_api_requests_total{{{labels},status="400"}} 2.0' in page_text
    assert f"stoker_api_request_seconds_count{{{labels}}} 3.0" in page_text


def test_what_nobody_knows_makes_no_series_of_its_own(client: TestClient, recorder: Prometheus) -> None:
    for path in ("/a", "/b", "/v1/secret"):
        client.simulate_get(path)
    with pytest.warns(WSGIWarning, match="BREW"):
        client.simulate_request("BREW", "/c")
    page_text = recorder.text().decode()
    assert 'stoker_api_requests_total{method="GET",route="none",status="404"} 3.0' in page_text
    assert 'method="other",route="none"' in page_text
    assert "secret" not in page_text


def test_a_path_cannot_write_lines_of_its_own(client: TestClient, lines: io.StringIO) -> None:
    client.simulate_get("/v1/x%0A2026-01-01 CRITICAL all is lost/stacks/mine")
    assert len(lines.getvalue().splitlines()) == 1
    assert "CRITICAL" not in lines.getvalue()
    assert " - mine] GET" in lines.getvalue()


def test_a_request_is_known_while_it_runs_and_not_afterwards(client: TestClient, page: Page) -> None:
    answer = client.simulate_get("/v1/demo/stacks/broken")
    [(request, seconds)] = page.running
    assert (request.method, request.route) == ("GET", "/v1/{tenant_id}/stacks/{stack_name}")
    assert seconds >= 0
    assert answer.status_code == 400
    assert page._watch.running() == []
