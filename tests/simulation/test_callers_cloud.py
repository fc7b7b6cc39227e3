"""A goal is checked against the cloud of who asks for it: its services, and things that values name.

The API and the engine are the real ones.  The services are real HTTP servers that know a few images.
"""

import http.server
import json
import logging
import pathlib
import threading
import typing
import urllib.parse
from collections.abc import Callable, Iterator, Mapping

import falcon.testing
import pytest
from harness.features import FEATURES_OF_API
from harness.resource_types import types_of
from keystoneauth1.session import Session
from simulation.world import World
from stoker.api.app import make_app
from stoker.api.authenticator import NoAuthentication
from stoker.api.context import RequestContext
from stoker.api.operations import Services
from stoker.cli.config.options import QUIET
from stoker.cli.wiring.routes import ROUTES
from stoker.engine import cloud
from stoker.engine.caller_services import CallerServices
from stoker.engine.cloud import KEPT, CloudChecks
from stoker.engine.cloud_questions import ServiceQuestions
from stoker.engine.compile import GoalCompiler
from stoker.engine.context import EngineContext
from stoker.engine.guests import Guests
from stoker.engine.signal_urls import SignalAddresses
from stoker.keystone.caller import CallerAccess
from stoker.keystone.client_options import ClientOptions, ServiceOptions
from stoker.keystone.service_clients import NoSuchService, ServiceClients
from stoker.resources import Custom, Property, ResourceType
from stoker.resources.registry import ResourceRegistry
from stoker.template.compile import Limits

RESOURCE_TYPES = types_of("heat")

ADDRESSES = SignalAddresses("http://sim", b"key")
Json = typing.Any
PATIENT = 60.0
"""Seconds for a service that answers: on a slow host too, its answer comes in time."""
SMALL = "11111111-1111-4111-8111-111111111111"
BIG = "22222222-2222-4222-8222-222222222222"
IMAGES = {SMALL: "small", BIG: "big", "33333333-3333-4333-8333-333333333333": "big"}


class ImageService:
    """An image service over HTTP, which knows images by project (which is the token, too).

    :ivar asked: paths with queries that were asked for.
    :ivar status: answered in place of images, if it is not 200.
    :ivar garbled: JSON that means nothing is answered.
    :ivar gate: cleared while no question is answered.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.status = 200
        self.garbled = False
        self.gate = threading.Event()
        self.gate.set()
        service = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                url = urllib.parse.urlsplit(self.path)
                token = self.headers.get("X-Auth-Token", "")
                if url.path in ("/", ""):
                    links = [{"rel": "self", "href": f"{service.url}/v2/"}]
                    body: Json = {"versions": [{"id": "v2.9", "status": "CURRENT", "links": links}]}
                    return self.reply(200, body)
                service.calls.append((token, self.path))
                service.gate.wait(600)
                images = IMAGES if token == "p1" else {}
                name = urllib.parse.parse_qs(url.query).get("name", [None])[0]
                last = url.path.rsplit("/", 1)[-1]
                if service.garbled:
                    return self.reply(200, ["?"])
                if service.status != 200:
                    return self.reply(service.status, {"message": "no"})
                if last == "images":
                    matches = [{"id": key, "name": item} for key, item in images.items() if item == name]
                    return self.reply(200, {"images": matches})
                if last in images:
                    return self.reply(200, {"id": last, "name": images[last]})
                return self.reply(404, {"message": "No image found"})

            def reply(self, status: int, body: Json) -> None:
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args: object) -> None:
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request: object, client_address: object) -> None:
                """Who waits no longer hangs up, as it should."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def close(self) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()


class Machine(ResourceType):
    service = "compute"
    properties_schema = {
        "image": Property("string", constraints=(Custom(check_name="glance.image"),)),
        "secret": Property("string", sensitive=True, constraints=(Custom(check_name="glance.image"),)),
        "disks": Property(
            "list",
            schema=Property(
                "map", schema={"image": Property("string", constraints=(Custom(check_name="glance.image"),))}
            ),
        ),
    }


class Old(ResourceType):
    service = "block-storage"


class Authenticated(NoAuthentication):
    """Every request has a token of the project of its path, with a service catalog."""

    def __init__(self, catalog: Json) -> None:
        self.catalog = catalog

    def identify(self, tenant: str, headers: Mapping[str, str]) -> RequestContext:
        text = None if self.catalog is None else json.dumps(self.catalog)
        return RequestContext(tenant, access=CallerAccess(tenant, "ann", tenant, text))


class Site:
    """The API over the simulation's world, with types that need services."""

    def __init__(self, world: World, images: ImageService) -> None:
        self.world = world
        self.images = images
        self.enabled = True
        self.now = 0.0
        self.auth = Authenticated([*endpoint("image", images.url), *endpoint("compute", images.url)])
        self.options = ClientOptions()
        types = {**RESOURCE_TYPES, "Acme::Machine": Machine, "Acme::Old": Old}
        self.registry = ResourceRegistry(types)
        self.api = self._api()

    def _api(self) -> falcon.testing.TestClient:
        world = self.world
        context = self.world.context
        context = EngineContext(
            **{
                **{name: getattr(context, name) for name in EngineContext.__dataclass_fields__},
                "registry": self.registry,
                "compiler": GoalCompiler(self.registry, Limits()),
            }
        )

        def make_session(auth: Json, versions: dict[str, Json]) -> Session:
            return Session(auth=auth, timeout=PATIENT, discovery_cache=versions)

        services = CallerServices(self.options, make_session, within=cloud.ANSWERED_WITHIN)
        checks = CloudChecks(
            options=self.options,
            ask=ServiceQuestions(services).ask,
            enabled=lambda: self.enabled,
            clock=lambda: 1_000_000.0,
            monotonic=lambda: self.now,
        )
        services = Services(
            database=world.database,
            context=context,
            guests=Guests(context, ADDRESSES, lambda config: None),
            registry=self.registry,
            sealer=world.sealer,
            auth=self.auth,
            clock=world.clock,
            features=FEATURES_OF_API,
            cloud=checks.of,
        )
        return falcon.testing.TestClient(make_app(services, ROUTES, ADDRESSES))

    def create(self, template: Json, project: str = "p1", **body: Json) -> falcon.testing.Result:
        name = f"s{len(self.images.calls)}-{id(template)}"
        return self.api.simulate_post(
            f"/v1/{project}/stacks", json={"stack_name": name, "template": template, **body}
        )

    def types(self) -> list[str]:
        return [str(name) for name in self.api.simulate_get("/v1/p1/resource_types").json["resource_types"]]


def endpoint(service: str, url: str = "http://127.0.0.1:9", region: str = "here") -> list[Json]:
    return [{"type": service, "name": service, "endpoints": [{"region": region, "publicURL": url}]}]


@pytest.fixture
def images() -> Iterator[ImageService]:
    service = ImageService()
    yield service
    service.close()


@pytest.fixture
def site(tmp_path: pathlib.Path, images: ImageService, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setattr(cloud, "ANSWERED_WITHIN", PATIENT)
    return Site(World(tmp_path, hosts=1), images)


def template(*types: str, **properties: Json) -> Json:
    resources = {f"r{at}": {"type": name, "properties": properties} for at, name in enumerate(types)}
    return {"heat_template_version": "2018-08-31", "resources": resources}


def parameter(name: str = "glance.image", **more: Json) -> Json:
    declared = {"type": "string", "constraints": [{"custom_constraint": name}], **more}
    return {"heat_template_version": "2018-08-31", "parameters": {"p": declared}}


def message_of(answer: falcon.testing.Result, status: int = 400) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json["error"]["message"])


# -- services of types -----------------------------------------------------------------------------


def test_a_type_whose_service_is_missing_is_refused_and_not_listed(site: Site) -> None:
    assert "Acme::Machine" in site.types()
    assert site.create(template("Acme::Machine")).status_code == 201
    site.auth.catalog = endpoint("image", site.images.url)
    assert "Acme::Machine" not in site.types()
    assert "OS::Heat::None" in site.types()
    answer = site.create(template("OS::Heat::None", "Acme::Machine"))
    assert message_of(answer) == (
        "HEAT-E99001 Service nova is not available for resource type Acme::Machine, reason: nova compute "
        "endpoint is not in service catalog."
    )
    assert answer.json["error"]["type"] == "ResourceTypeUnavailable"
    assert message_of(site.api.simulate_get("/v1/p1/resource_types/Acme::Machine")).startswith("HEAT-E99001")


def test_a_nested_stack_is_checked_too_and_a_template_without_its_values(site: Site) -> None:
    site.auth.catalog = []
    child = json.dumps(template("Acme::Machine"))
    answer = site.create(template("child.yaml"), files={"child.yaml": child})
    assert "HEAT-E99001 Service nova" in message_of(answer)
    lacking = {**template("Acme::Machine"), "parameters": {"p": {"type": "string"}}}
    answer = site.api.simulate_post("/v1/p1/validate", json={"template": lacking})
    assert "HEAT-E99001 Service nova" in message_of(answer)
    ignored = site.api.simulate_post("/v1/p1/validate?ignore_errors=99001", json={"template": lacking})
    assert ignored.status_code == 200, ignored.text


def test_an_update_is_checked_and_a_deletion_is_not(site: Site) -> None:
    stack = site.create(template("Acme::Machine")).json["stack"]
    path = next(link["href"] for link in stack["links"])
    address = urllib.parse.urlsplit(path).path
    site.auth.catalog = []
    again = site.api.simulate_put(address, json={"template": template("Acme::Machine")})
    assert "HEAT-E99001" in message_of(again)
    assert "HEAT-E99001" in message_of(site.api.simulate_patch(address, json={"parameters": {}}))
    assert site.api.simulate_delete(address).status_code == 204


@pytest.mark.parametrize("known_as", ["block-storage", "volumev3", "block-store"])
def test_a_service_has_several_names(site: Site, known_as: str) -> None:
    site.auth.catalog = endpoint(known_as)
    assert "Acme::Old" in site.types()
    assert site.create(template("Acme::Old")).status_code == 201


def test_without_a_catalog_everything_is_available(site: Site) -> None:
    site.auth.catalog = None
    assert {"Acme::Machine", "Acme::Old"} <= set(site.types())


@pytest.mark.parametrize(
    ("options", "is_reached"),
    [
        (ServiceOptions(), True),
        (ServiceOptions(region_name="there"), False),
        (ServiceOptions(region_name="here"), True),
        (ServiceOptions(interface="internal"), False),
        (ServiceOptions(region_name="there", endpoint_override="http://nova"), True),
    ],
)
def test_region_interface_and_address_of_the_options_count(
    options: ServiceOptions, is_reached: bool, tmp_path: pathlib.Path
) -> None:
    catalog = json.dumps(endpoint("compute"))
    assert CallerAccess("token", "ann", "p1", catalog).has_service("image", ServiceOptions()) is False
    assert CallerAccess("token", "ann", "p1", catalog).has_service("compute", options) is is_reached


def test_two_names_of_a_service_without_an_endpoint_in_the_region_are_none() -> None:
    catalog = json.dumps([*endpoint("volumev3"), *endpoint("block-storage")])
    access = CallerAccess("token", "ann", "p1", catalog)
    assert access.has_service("block-storage", ServiceOptions())
    assert not access.has_service("block-storage", ServiceOptions(region_name="there"))
    clients = ServiceClients(ClientOptions(ServiceOptions(region_name="there")))
    with pytest.raises(NoSuchService):
        clients.adapter(Session(auth=access.auth()), "block-storage", "3", "3.60")


# -- values that only the cloud knows --------------------------------------------------------------


def test_a_parameter_names_a_thing_by_name_or_id(site: Site) -> None:
    for value in ("small", SMALL, BIG):
        assert site.create(parameter(), parameters={"p": value}).status_code == 201
    answer = site.create(parameter(), parameters={"p": "smal"})
    assert message_of(answer) == (
        "Parameter 'p' is invalid: Error validating value 'smal': The Image (smal) could not be found."
    )
    assert answer.json["error"]["type"] == "StackValidationFailed"
    unknown = SMALL.replace("1", "9")
    assert f"The Image ({unknown}) could not be found." in message_of(
        site.create(parameter(), parameters={"p": unknown})
    )
    assert "Several things of kind Image have the name big" in message_of(
        site.create(parameter(), parameters={"p": "big"})
    )


def test_a_default_that_is_used_and_each_item_of_a_list_are_checked(site: Site) -> None:
    assert "'p' is invalid" in message_of(site.create(parameter(default="none such")))
    assert site.create(parameter(default="none such"), parameters={"p": "small"}).status_code == 201
    items = parameter(type="comma_delimited_list")
    assert site.create(items, parameters={"p": f"small,{BIG}"}).status_code == 201
    assert "value 'c'" in message_of(site.create(items, parameters={"p": "small,c"}))


def test_nothing_of_another_project_is_known(site: Site) -> None:
    assert site.create(parameter(), parameters={"p": "small"}).status_code == 201
    assert "The Image (small) could not be found." in message_of(
        site.create(parameter(), project="p2", parameters={"p": "small"})
    )


def test_what_was_right_is_not_checked_again_for_a_while_and_what_was_wrong_is(site: Site) -> None:
    for _ in range(2):
        site.create(parameter(), parameters={"p": "small"})
    assert len(site.images.calls) == 1
    site.now = KEPT + 1
    site.create(parameter(), parameters={"p": "small"})
    assert len(site.images.calls) == 2
    for _ in range(2):
        site.create(parameter(), parameters={"p": "wrong"})
    assert len(site.images.calls) == 4


def test_known_properties_are_checked_at_any_depth(site: Site) -> None:
    document = template("Acme::Machine", image="small", disks=[{"image": "small"}])
    assert site.create(document).status_code == 201
    assert message_of(site.create(template("Acme::Machine", image="x"))) == (
        "Property error: : resources.r0.properties.image: : Error validating value 'x': The Image (x) could "
        "not be found."
    )
    partly = template("Acme::Machine", disks=[{"image": {"get_resource": "other"}}, {"image": "y"}])
    partly["resources"]["other"] = {"type": "OS::Heat::None"}
    assert message_of(site.create(partly)).startswith(
        "Property error: : resources.r0.properties.disks[1].image: : "
    )
    partly["resources"]["r0"]["properties"]["disks"].pop()
    assert site.create(partly).status_code == 201


@pytest.mark.parametrize(
    ("child", "properties", "text"),
    [
        (parameter(), {"p": "x"}, "resources.r0: Parameter 'p' is invalid: Error validating value 'x'"),
        (
            template("Acme::Machine", image="x"),
            {},
            "Property error: resources.r0.resources.r0.properties.image: Error validating value 'x'",
        ),
    ],
)
def test_below_the_root_a_thing_that_nobody_has_made_yet_is_only_a_warning(
    site: Site, child: Json, properties: Json, text: str
) -> None:
    body = {"template": template("child.yaml", **properties), "files": {"child.yaml": json.dumps(child)}}
    assert site.create(**body).status_code == 201
    view = site.api.simulate_post("/v1/p1/validate", json=body).json
    assert [warning.startswith(text) for warning in view["Warnings"]] == [True]


def test_a_name_of_the_root_that_leads_nowhere_is_refused_whoever_else_has_it(site: Site) -> None:
    files = {"child.yaml": json.dumps(parameter())}
    document = {**template("child.yaml", p="x"), "parameters": parameter()["parameters"]}
    answer = site.create(document, files=files, parameters={"p": "x"})
    assert message_of(answer).startswith("Parameter 'p' is invalid: Error validating value 'x'")


def test_secrets_are_not_shown_and_the_authors_own_words_are(site: Site) -> None:
    hidden = message_of(site.create(parameter(hidden=True), parameters={"p": "s3cret"}))
    assert "s3cret" not in hidden
    assert "'p' is invalid" in hidden
    assert "s3cret" not in message_of(site.create(template("Acme::Machine", secret="s3cret")))
    document = parameter(constraints=[{"custom_constraint": "glance.image", "description": "Ask Bob."}])
    assert message_of(site.create(document, parameters={"p": "x"})) == "Parameter 'p' is invalid: Ask Bob."


def test_a_missing_service_cannot_meet_the_constraint(site: Site) -> None:
    site.auth.catalog = endpoint("compute")
    assert "the service catalog has no service of type image" in message_of(
        site.create(parameter(), parameters={"p": "small"})
    )


@pytest.fixture
def product_log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The log with ``debug = true``: libraries have the levels that the product gives them by default."""
    caplog.set_level(logging.DEBUG)
    for level in QUIET:
        name, _, level_name = level.partition("=")
        caplog.set_level(level_name, logger=name)
    return caplog


@pytest.mark.parametrize("status", [401, 403, 429, 500, 503])
def test_a_service_that_does_not_answer_properly_stops_nobody(
    site: Site, status: int, product_log: pytest.LogCaptureFixture
) -> None:
    site.images.status = status
    assert site.create(parameter(hidden=True), parameters={"p": "s3cret"}).status_code == 201
    assert "Custom constraint glance.image is not checked" in product_log.text
    assert "s3cret" not in product_log.text


def test_a_service_that_is_unavailable_stops_nobody_and_its_address_is_not_logged(
    site: Site, product_log: pytest.LogCaptureFixture
) -> None:
    site.auth.catalog = endpoint("image", "http://127.0.0.1:9/v2")
    assert site.create(parameter(hidden=True), parameters={"p": "s3cret"}).status_code == 201
    assert "Custom constraint glance.image is not checked: image: unavailable" in product_log.text
    assert "s3cret" not in product_log.text


def test_an_answer_that_nobody_understands_stops_nobody(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.images.garbled = True
    assert site.create(parameter(), parameters={"p": "small"}).status_code == 201
    assert site.create(parameter(), parameters={"p": SMALL}).status_code == 201
    assert "its answer is malformed" in caplog.text


def test_a_service_that_hangs_costs_a_request_a_second_in_all(
    site: Site, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud, "ANSWERED_WITHIN", 1.0)
    site.images.gate.clear()
    declared = parameter(type="comma_delimited_list")
    values = [f"image-{number}" for number in range(100)]
    assert site.create(declared, parameters={"p": values}).status_code == 201
    assert "no answer within 1.0 s" in caplog.text
    site.images.gate.set()
    while ("p1", "/v2/images?name=last") not in site.images.calls:
        site.create(parameter(), parameters={"p": "last"})
    late = [path for _, path in site.images.calls if path.endswith("image-99")]
    assert late == [], "what was not asked in time is not asked any more"


def test_an_option_turns_the_questions_off(site: Site) -> None:
    site.enabled = False
    assert site.create(parameter(), parameters={"p": "none such"}).status_code == 201
    assert site.images.calls == []


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        ("expiration", ["2001-01-01", ""], ["1970-01-02T00:00:00Z"]),
        ("zaqar.queue", ["q", "q" * 64, ""], ["q" * 65]),
        ("nova.keypair", [""], []),
    ],
)
def test_some_questions_need_no_service(site: Site, check: str, good: list[str], bad: list[str]) -> None:
    for value in good:
        assert site.create(parameter(check), parameters={"p": value}).status_code == 201
    for value in bad:
        assert "Parameter 'p' is invalid" in message_of(
            site.create(parameter(check), parameters={"p": value})
        )


@pytest.mark.parametrize("path", ["stacks/preview", "validate"])
def test_previews_and_validations_ask_too(site: Site, path: str) -> None:
    body = {"stack_name": "s", "template": parameter(), "parameters": {"p": "x"}}
    if path == "validate":
        body = {"template": parameter(), "environment": {"parameters": {"p": "x"}}}
    assert "'p' is invalid" in message_of(site.api.simulate_post(f"/v1/p1/{path}", json=body))


def test_nothing_is_checked_in_the_cloud_for_an_admin_in_another_project(site: Site) -> None:
    identify: Callable[..., RequestContext] = site.auth.identify
    stack = site.create(parameter(), parameters={"p": "small"}).json["stack"]
    address = urllib.parse.urlsplit(stack["links"][0]["href"]).path

    def as_admin(tenant: str, headers: Mapping[str, str]) -> RequestContext:
        caller = identify("p2", headers)
        return RequestContext("p2", everywhere=True, access=caller.access)

    site.auth.identify = as_admin  # type: ignore[method-assign]
    body = {"template": parameter(), "parameters": {"p": BIG}}
    assert site.api.simulate_put(address, json=body).status_code == 202
