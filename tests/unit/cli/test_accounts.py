"""The service's own accounts at a Keystone that accepts them, refuses them, or is another server."""

import json
import pathlib
import typing
import wsgiref.util
from collections.abc import Iterator, Mapping

import oslo_messaging.opts
import pytest
from harness.scripted_service import Answer, ScriptedService, serving
from harness.waiting import wait_for
from oslo_config import cfg
from oslo_upgradecheck.upgradecheck import Code
from stoker.api.health import AccountHealth
from stoker.cli.commands.config import problems
from stoker.cli.config import options
from stoker.cli.config.errors import WrongConfiguration
from stoker.cli.programs.status import Checks
from stoker.cli.wiring.accounts import KeystoneSilent, account_health, check_account
from stoker.cli.wiring.keystone import behind_keystone
from stoker.cli.wiring.servers import optional_servers, unreachable
from stoker.sealing.sealer import Sealer

Json = typing.Any
ACCOUNT = """\
auth_type = v3password
username = stoker
password = p
project_name = service
user_domain_id = default
project_domain_id = default
auth_url = {url}
"""
REFUSED = Answer(401, {"error": {"code": 401, "title": "Unauthorized", "message": "wrong password"}})


@pytest.fixture(autouse=True)
def options_of_plugins() -> Iterator[None]:
    """Unregister what a plugin of Keystone requires; else later tests of the process would need it."""
    yield
    cfg.CONF.reset()
    for section in {"keystone_authtoken", "trustee"} & cfg.CONF._groups.keys():
        registered = [entry["opt"] for entry in cfg.CONF._groups[section]._opts.values()]
        cfg.CONF.unregister_opts([option for option in registered if option.required], section)


@pytest.fixture
def keystone() -> Iterator[ScriptedService]:
    with serving() as service:
        version = {
            "id": "v3.14",
            "status": "stable",
            "links": [{"rel": "self", "href": f"{service.url}/v3/"}],
        }
        service.answers["GET /v3"] = service.answers["GET /v3/"] = Answer(body={"version": version})
        service.answers["GET /"] = Answer(300, {"versions": {"values": [version]}})
        yield service


def accept(keystone: ScriptedService) -> None:
    endpoints = [
        {"interface": name, "region_id": "r", "url": f"{keystone.url}/v3", "id": name}
        for name in ("public", "admin", "internal")
    ]
    token = {
        "methods": ["password"],
        "expires_at": "2999-01-01T00:00:00.000000Z",
        "issued_at": "2020-01-01T00:00:00.000000Z",
        "user": {"id": "u", "name": "stoker", "domain": {"id": "default", "name": "Default"}},
        "project": {"id": "p", "name": "service", "domain": {"id": "default", "name": "Default"}},
        "roles": [{"id": "r", "name": "service"}],
        "catalog": [{"type": "identity", "id": "i", "name": "keystone", "endpoints": endpoints}],
    }
    keystone.answers["POST /v3/auth/tokens"] = Answer(201, {"token": token}, {"X-Subject-Token": "own"})


def configured(directory: pathlib.Path, url: str, more: str = "", *, limits: str = "") -> cfg.ConfigOpts:
    path = directory / "stoker.conf"
    limits += "http_request_max_retries = 0\n"
    account = ACCOUNT.format(url=url)
    path.write_text(f"[keystone_authtoken]\n{account}{limits}[secrets]\nkey = k\n{more}")
    conf = cfg.ConfigOpts()
    for group, registered in [*options.list_opts(), *oslo_messaging.opts.list_opts()]:
        read = group in (None, "api", "stacks", "secrets", "oslo_messaging_notifications")
        if read or str(group).startswith("clients"):
            conf.register_opts(registered, group)
    conf([], default_config_files=[str(path)], default_config_dirs=[])
    return conf


def test_an_account_that_gets_a_token_is_right(tmp_path: pathlib.Path, keystone: ScriptedService) -> None:
    accept(keystone)
    conf = configured(tmp_path, f"{keystone.url}/v3")
    for section in ("keystone_authtoken", "trustee"):
        check_account(conf, section)
    assert keystone.requests.count("POST /v3/auth/tokens") == 2


def test_a_refused_account_is_named(tmp_path: pathlib.Path, keystone: ScriptedService) -> None:
    keystone.answers["POST /v3/auth/tokens"] = REFUSED
    conf = configured(tmp_path, f"{keystone.url}/v3")
    for section in ("keystone_authtoken", "trustee"):
        text = rf"^\[{section}\]: Keystone refuses the service's own account: .*wrong password"
        with pytest.raises(WrongConfiguration, match=text):
            check_account(conf, section)


def test_an_address_that_is_not_keystones_is_distinguished_from_one_without_an_answer(
    tmp_path: pathlib.Path, keystone: ScriptedService
) -> None:
    with pytest.raises(WrongConfiguration, match="auth_url") as caught:
        check_account(configured(tmp_path, f"{keystone.url}/elsewhere"), "keystone_authtoken")
    assert not isinstance(caught.value, KeystoneSilent)
    with pytest.raises(KeystoneSilent, match=r"auth_url: Keystone does not answer: "):
        check_account(configured(tmp_path, "http://127.0.0.1:1/v3"), "keystone_authtoken")


WRONG = {
    "refused": ("refusing", "{section}: Keystone refuses the service's own account: ", True),
    "another server": ("elsewhere", "{section} auth_url: it is not an address of Keystone: ", True),
    "away": ("away", "{section} auth_url: Keystone does not answer: ", False),
}
"""Wrong accounts: the address of Keystone, the text, and whether it is one of health."""
PLACES = [
    *(
        pytest.param(
            {section: {"auth_url": f"{{{address}}}"}},
            text.format(section=f"[{section}]"),
            in_health,
            id=f"{section} {name}",
        )
        for section in ("keystone_authtoken", "trustee")
        for name, (address, text, in_health) in WRONG.items()
    ),
    ({"trustee": {"auth_type": "pigeon"}}, "[trustee]: The plugin pigeon ", True),
    (
        {"keystone_authtoken": {"memcached_servers": "127.0.0.1:1"}},
        "] memcached_servers: 127.0.0.1:1 ",
        False,
    ),
    (
        {"oslo_messaging_notifications": {"driver": "messagingv2", "transport_url": "rabbit://127.0.0.1:1/"}},
        "[oslo_messaging_notifications] transport_url: ",
        False,
    ),
    ({"api": {"horizon_url": "http://127.0.0.1:1"}}, "[api] horizon_url: it does not answer: ", False),
    (
        {"clients_nova": {"endpoint_override": "http://127.0.0.1:1/v2.1"}},
        "[clients_nova] endpoint_override: it does not answer: ",
        False,
    ),
    ({"clients": {"region_name": "mars"}}, "[clients] region_name, endpoint_type: ", False),
    (
        {"clients_nova": {"endpoint_type": "internal"}},
        "[clients_nova] region_name, endpoint_type: the service catalog has no internal endpoint",
        False,
    ),
    (
        {"clients_nova": {"ca_file": "/no/such.pem"}},
        "[clients_nova] ca_file: there is no file /no/such.pem",
        False,
    ),
]


@pytest.mark.parametrize(("changes", "text", "in_health"), [({}, "", False), *PLACES])
def test_each_wrong_place_of_a_configuration_is_named_by_each_check(
    tmp_path: pathlib.Path, keystone: ScriptedService, changes: Json, text: str, in_health: bool
) -> None:
    accept(keystone)
    with serving() as refusing:
        refusing.answers["POST /v3/auth/tokens"] = REFUSED
        refusing.answers["GET /v3"] = keystone.answers["GET /v3"]
        addresses = {
            "good": f"{keystone.url}/v3",
            "refusing": f"{refusing.url}/v3",
            "elsewhere": f"{keystone.url}/elsewhere",
            "away": "http://127.0.0.1:1/v3",
        }
        path = tmp_path / "stoker.conf"
        path.write_text(whole_configuration(tmp_path, changes, addresses))
        cfg.CONF.reset()  # Another test of the process may have read a configuration.
        conf = options.load([], program="stoker-manage", files=[path])
        faults = {server: fault for server, fault in unreachable(conf) if fault is not None}
        problem = settled(account_health(conf))
        of_conductor = settled(account_health(conf, ("trustee",)))
        conf.reset()
        checks = Checks([path])
        configuration, others = checks.configuration(), checks.others()
        cfg.CONF.reset()
    assert configuration.code == Code.SUCCESS, configuration.details
    assert faults.pop("database").startswith("[database] connection: ")  # It was never set up.
    assert len(faults) == (1 if changes else 0), faults
    assert others.code == (Code.FAILURE if changes else Code.SUCCESS)
    for told in (*faults.values(), *([others.details] if changes else []), *([problem] if in_health else [])):
        assert text in (told or "")
    assert (problem is not None) == in_health
    # A conductor acts by one of the accounts only.
    assert of_conductor == (problem if "trustee" in changes else None)


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"keystone_authtoken": {"auth_type": ""}}, "[keystone_authtoken] auth_type is missing"),
        ({"clients_nova": {"max_microversion": "new"}}, "[clients_nova] max_microversion: "),
    ],
)
def test_an_option_that_no_server_can_be_found_by_is_named_among_the_others(
    tmp_path: pathlib.Path, changes: Json, text: str
) -> None:
    path = tmp_path / "stoker.conf"
    path.write_text(whole_configuration(tmp_path, changes, {"good": "http://127.0.0.1:1/v3"}))
    cfg.CONF.reset()
    faults, conf = problems([path])
    assert conf is not None
    assert [text in fault.what for fault in faults] == [True]
    servers = dict(unreachable(conf))
    conf.reset()
    assert {"account [keystone_authtoken] at Keystone", "account [trustee] at Keystone"} <= servers.keys()


def whole_configuration(
    folder: pathlib.Path, changes: Mapping[str, Mapping[str, str]], addresses: Mapping[str, str]
) -> str:
    """A right configuration with some options changed; addresses are in braces."""
    account = dict(line.split(" = ") for line in ACCOUNT.format(url="{good}").splitlines())
    sections: dict[str, dict[str, str]] = {
        "DEFAULT": {"transport_url": "kombu+memory://"},
        "api": {"auth_strategy": "keystone"},
        "coordination": {"backend_url": f"file://{folder}/group"},
        "database": {"connection": f"sqlite:///{folder}/stoker.sqlite"},
        "secrets": {"key": Sealer.generate_key()},
        "keystone_authtoken": account,
        "trustee": account,
    }
    for section, lines in changes.items():
        sections[section] = {**sections.get(section, {}), **lines}
    return "".join(
        f"[{section}]\n" + "".join(f"{name} = {value}\n" for name, value in lines.items())
        for section, lines in sections.items()
    ).format(**addresses)


def settled(health: AccountHealth) -> str | None:
    """Return the result of the first check."""
    told = list[str | None]()

    def ended() -> bool:
        told.append(health.problem())
        return health.checked

    wait_for(ended, 60)
    return health.problem()


@pytest.mark.parametrize("state", ["accepted", "refused", "away"])
def test_health_tells_a_refused_account_only(
    tmp_path: pathlib.Path, keystone: ScriptedService, state: str
) -> None:
    accept(keystone)
    if state == "refused":
        keystone.answers["POST /v3/auth/tokens"] = REFUSED
    url = "http://127.0.0.1:1" if state == "away" else keystone.url
    problem = settled(account_health(configured(tmp_path, f"{url}/v3")))
    assert ("refuses the service's own account" in (problem or "")) == (state == "refused")
    assert (problem is None) == (state != "refused")


def application(environ: Json, start: Json) -> list[bytes]:
    start(f"200 {environ['HTTP_X_IDENTITY_STATUS']}", [])
    return []


def asked(guarded: Json) -> tuple[list[str], bytes]:
    """Return the status and the body of the answer to a request with a token."""
    environ: dict[str, Json] = {"PATH_INFO": "/v1/t/stacks", "HTTP_X_AUTH_TOKEN": "token"}
    wsgiref.util.setup_testing_defaults(environ)
    statuses = list[str]()
    body = b"".join(guarded(environ, lambda status, headers, info=None: statuses.append(status)))
    return statuses, body


@pytest.mark.parametrize("state", ["refused", "away"])
def test_a_token_that_nobody_has_checked_is_no_wrong_token(
    tmp_path: pathlib.Path, keystone: ScriptedService, state: str
) -> None:
    keystone.answers["POST /v3/auth/tokens"] = REFUSED
    url = "http://127.0.0.1:1" if state == "away" else keystone.url
    statuses, body = asked(behind_keystone(application, configured(tmp_path, f"{url}/v3")))
    assert statuses == ["503 Service Unavailable"]
    assert json.loads(body)["error"]["message"].startswith("The token was not checked")


def test_a_token_that_keystone_does_not_know_is_left_to_the_application(
    tmp_path: pathlib.Path, keystone: ScriptedService
) -> None:
    accept(keystone)
    conf = configured(tmp_path, f"{keystone.url}/v3")
    statuses, _ = asked(behind_keystone(application, conf))
    assert statuses == ["200 Invalid"]


def test_all_that_is_configured_is_checked(tmp_path: pathlib.Path, keystone: ScriptedService) -> None:
    more = (
        "[oslo_messaging_notifications]\ndriver = messagingv2\ntransport_url = rabbit://127.0.0.1:1/\n"
        f"[api]\nhorizon_url = {keystone.url}/horizon\n"
        "[trustee]\nauth_type = v3password\nauth_url = http://k/v3\nusername = t\npassword = p\n"
        "[DEFAULT]\ntransport_url = rabbit://127.0.0.1:1/\n"
    )
    conf = configured(tmp_path, f"{keystone.url}/v3", more, limits="memcached_servers = 127.0.0.1:1\n")
    servers = optional_servers(conf)
    assert list(servers) == [
        "account [keystone_authtoken] at Keystone",
        "account [trustee] at Keystone",
        "memcached",
        "message bus of notifications",
        "Horizon",
    ]
    servers["Horizon"][1](conf)  # 404 is an answer.
    with pytest.raises(WrongConfiguration, match=r"memcached_servers: 127.0.0.1:1 does not answer"):
        servers["memcached"][1](conf)
