"""The tests that others have written for Heat and its clients, unmodified, on Stoker with a real Keystone."""

import json
import pathlib
import re
import typing
from collections.abc import Iterator, Mapping

import pytest
import yaml
from client.serving import PATIENT, Service
from harness.keystone import PASSWORD, REGION, Keystone
from suites.stestr import BIN, SUITES, Runner, together

Json = typing.Any
ROOT = pathlib.Path(__file__).parents[2]
LISTS = yaml.safe_load((pathlib.Path(__file__).parent / "deliberate.yaml").read_text())
LEFT_OUT: Mapping[str, str] = LISTS["left_out"]
FAILS: Mapping[str, str] = LISTS["fails"]
DOMAINS = {"user_domain_id": "default", "project_domain_id": "default"}
TEMPEST = """\
[DEFAULT]
log_dir = {folder}
[oslo_concurrency]
lock_path = {folder}/lock
[identity]
uri_v3 = {url}
region = {region}
[service_available]
cinder = false
glance = false
neutron = false
nova = false
swift = false
[heat_plugin]
auth_url = {url}
region = {region}
username = demo
password = {password}
project_name = demo
admin_username = admin
admin_password = {password}
admin_project_name = admin
user_domain_id = default
project_domain_id = default
instance_type = m1.small
minimal_instance_type = m1.tiny
image_ref = debian
minimal_image_ref = cirros
build_interval = 1
build_timeout = 240
hidden_stack_tag = hidden
[heat_features_enabled]
stack_cancel = true
"""


class Installation:
    """Stoker in the service catalog of a Keystone, with the user and the admin of the suites."""

    def __init__(self, keystone: Keystone, folder: pathlib.Path) -> None:
        self._keystone = keystone
        self._folder = folder
        demo = keystone.make("project", name="demo", domain_id="default")
        user = keystone.make("user", name="demo", domain_id="default", password=PASSWORD)
        keystone.grant(user, demo, "member")
        project = keystone.make("project", name="service", domain_id="default")
        account = keystone.make("user", name="stoker", domain_id="default", password=PASSWORD)
        keystone.grant(account, project, "service")
        config = folder / "keystone.conf"
        config.write_text(
            "[api]\nauth_strategy = keystone\n[stacks]\nhidden_stack_tags = hidden\n"
            "allow_trusts_redelegation = true\n"
            f"[keystone_authtoken]\nauth_type = password\nauth_url = {keystone.url}\nusername = stoker\n"
            f"password = {PASSWORD}\nproject_name = service\nuser_domain_id = default\n"
            "project_domain_id = default\n"
        )
        self.service = Service(folder, config=config, env=PATIENT)
        self._entry = keystone.make("service", name="stoker", type="orchestration")
        url = f"{self.service.url}/v1/%(project_id)s"
        keystone.make("endpoint", service_id=self._entry, interface="public", region_id=REGION, url=url)
        values = {"folder": folder, "url": keystone.url, "region": REGION, "password": PASSWORD}
        (folder / "tempest.conf").write_text(TEMPEST.format(**values))
        # The names that openstacksdk's tests use.
        clouds = {f"devstack{kind}": self._cloud("demo") for kind in ("", "-alt")}
        clouds |= {f"devstack{kind}": self._cloud("admin") for kind in ("-admin", "-system-admin")}
        (folder / "clouds.yaml").write_text(json.dumps({"clouds": clouds}))

    def _cloud(self, name: str) -> Json:
        auth = {"auth_url": self._keystone.url, "username": name, "password": PASSWORD, **DOMAINS}
        return {"auth": {**auth, "project_name": name}, "region_name": REGION}

    def environment(self) -> Mapping[str, str]:
        """Return the variables by which the suites find the configuration and the user."""
        return {
            "TEMPEST_CONFIG_DIR": str(self._folder),
            "OS_CLIENT_CONFIG_FILE": str(self._folder / "clouds.yaml"),
            "OS_HEATCLIENT_EXEC_DIR": str(BIN),
            "OS_TEST_TIMEOUT": "600",  # openstacksdk ends a test after five seconds by default.
            "OS_AUTH_URL": self._keystone.url,
            "OS_USERNAME": "demo",
            "OS_PASSWORD": PASSWORD,
            "OS_PROJECT_NAME": "demo",
            "OS_TENANT_NAME": "demo",
            "OS_REGION_NAME": REGION,
            **{f"OS_{name.upper()}": text for name, text in DOMAINS.items()},
        }

    def close(self) -> None:
        """Stop Stoker, in which no request has broken, and take it out of the catalog."""
        self._keystone.remove("service", self._entry)
        self.service.stop()


@pytest.fixture(scope="module")
def installation(keystone: Keystone, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    running = Installation(keystone, tmp_path_factory.mktemp("suites"))
    yield running
    running.close()


@pytest.mark.long
@pytest.mark.timeout(4 * 3600)
@pytest.mark.parametrize("name", SUITES)
def test_a_suite_succeeds_but_for_the_deliberate_failures(
    installation: Installation, tmp_path: pathlib.Path, name: str
) -> None:
    runner = Runner(SUITES[name], tmp_path / name, installation.environment())
    every = runner.names()
    chosen = {test for test in every if not any(re.match(pattern, test) for pattern in LEFT_OUT)}
    assert chosen
    expected = FAILS.keys() & chosen
    first = runner.run(chosen)
    printed = runner.output()
    assert first.by_outcome.keys() <= {"success", "failure", "skip"}, printed
    # On a busy machine clients time out: what fails runs once more, alone.
    repeated = together(first.bad - expected, chosen)
    second = runner.run(repeated, workers=1) if repeated else first
    bad = (first.bad - repeated) | (second.bad & repeated)
    assert bad - expected == set(), printed + runner.output()
    assert expected - bad == set(), "these succeed: they are no deliberate failures any more"


@pytest.mark.long
def test_each_entry_of_the_lists_is_for_a_test_that_exists(
    installation: Installation, tmp_path: pathlib.Path
) -> None:
    every: frozenset[str] = frozenset()
    for name, suite in SUITES.items():
        every |= Runner(suite, tmp_path / name, installation.environment()).names()
    assert [test for test in FAILS if test not in every] == []
    assert [pattern for pattern in LEFT_OUT if not any(re.match(pattern, test) for test in every)] == []


def test_each_deliberate_failure_is_a_difference_that_the_documentation_names() -> None:
    headings = re.findall(r"^##+ (.+)$", (ROOT / "doc" / "heat.md").read_text(), re.MULTILINE)
    assert [reason for reason in FAILS.values() if reason.partition(" - ")[0] not in headings] == []
