"""The services of the cloud: what each runs, keeps and answers."""

import dataclasses
import grp
import json
import os
import pathlib
import pwd
import shutil
import typing
from collections.abc import Callable, Mapping, Sequence

from harness.certificates import write_certificate
from harness.cloud import configuration
from harness.cloud.layout import BIN, HOME, INSTALLED, PASSWORD, REGION, Ini, Layout, rendered, serving

Command = Sequence[str]
Schema = Callable[[Layout], Sequence[Command]]


def nothing(layout: Layout) -> None:
    """Write no further files."""


def alone(layout: Layout) -> Mapping[str, str]:
    """Return no variables beside those of all programs."""
    return {}


def unset(layout: Layout) -> Sequence[Command]:
    """Return no commands."""
    return []


def barbican_environment(layout: Layout) -> Mapping[str, str]:
    """Return the variables by which it finds its files."""
    paste = HOME / "etc/barbican/barbican-api-paste.ini"
    return {**home("barbican")(layout), "BARBICAN_PASTE": str(paste)}


def home(service: str) -> Callable[[Layout], Mapping[str, str]]:
    """Return the variables of a service that reads its configuration from the user's home only."""
    return lambda layout: {"HOME": str(layout.config(service))}


def nova_files(layout: Layout) -> None:
    """Copy what Nova reads from beside its configuration."""
    shutil.copy(HOME / "etc/nova/api-paste.ini", layout.config("nova"))


def designate_files(layout: Layout) -> None:
    """Copy what Designate reads from beside its configuration, and write its pool."""
    shutil.copy(HOME / "etc/designate/api-paste.ini", layout.config("designate"))
    pool_file(layout).write_text(json.dumps(configuration.designate_pool(layout)))


def pool_file(layout: Layout) -> pathlib.Path:
    """The file with the pool of Designate."""
    return layout.config("designate") / "pools.yaml"


def octavia_files(layout: Layout) -> None:
    """Write the authority that signs the certificates of Octavia's machines, which are never made."""
    write_certificate(configuration.octavia_authority(layout), "octavia.test")


@dataclasses.dataclass(frozen=True)
class Daemon:
    """A program beside a service's API.

    :ivar queue: what it reads once it serves; "": it reads none, and nothing waits for it.
    :ivar script: of the folder ``installed``; "": the program that is installed by this name.
    :ivar is_asked: the daemons after it ask it as soon as they run, so they start once it serves.
    """

    name: str
    queue: str
    script: str = ""
    is_asked: bool = False

    def command(self, config: str, layout: Layout) -> Command:
        """How to start it."""
        program = (
            [str(BIN / "python"), "-P", str(INSTALLED / self.script)]
            if self.script
            else [str(BIN / self.name)]
        )
        return [*program, "--config-file", config, "--log-file", str(layout.log(self.name))]


@dataclasses.dataclass(frozen=True)
class Service:
    """A service with an API.

    :ivar application: the module of its WSGI application.
    :ivar file: the name of its configuration file.
    :ivar endpoints: its entries in the service catalog: type and path; several where clients differ.
    :ivar schema: the commands that make what is in its databases, without ``--config-file``.
    :ivar probe: the path of a list that an admin may read; "": anybody may ask it.
    :ivar offers: paths of lists that an admin may read; each is empty until the daemons can work.
    :ivar needs_argument: the application finds its configuration by an argument only.
    :ivar files: writes the further files that it reads.
    :ivar environment: variables of its API, beside those of all programs.
    :ivar after: names of optional services that it asks, so they are in the service catalog before it starts.
    :ivar settings: commands that configure it after each start, without ``--config-file``.
    :ivar ports: names of further ports, on which its daemons listen.
    :ivar script: of the folder ``installed``, which gets the configuration and the folder of the service's
        state; "": the API is a WSGI application.
    """

    name: str
    application: str
    config: Callable[[Layout], Ini]
    file: str
    endpoints: Sequence[tuple[str, str]]
    databases: Sequence[str]
    schema: Schema
    probe: str = ""
    offers: Sequence[str] = ()
    daemons: Sequence[Daemon] = ()
    needs_argument: bool = False
    files: Callable[[Layout], None] = nothing
    environment: Callable[[Layout], Mapping[str, str]] = alone
    after: Sequence[str] = ()
    settings: Schema = unset
    ports: Sequence[str] = ()
    script: str = ""

    def path(self, layout: Layout) -> str:
        """Its configuration file."""
        return str(layout.config(self.name) / self.file)

    def configure(self, layout: Layout) -> None:
        """Write its configuration."""
        file = layout.config(self.name) / self.file
        file.parent.mkdir(parents=True, exist_ok=True)
        layout.state(self.name).mkdir(parents=True, exist_ok=True)
        file.write_text(rendered(self.config(layout)))
        self.files(layout)

    def command(self, layout: Layout) -> Command:
        """How to start its API."""
        if self.script:
            program = [str(BIN / "python"), "-P", "-W", "ignore", str(INSTALLED / self.script)]
            return [*program, self.path(layout), str(layout.state(self.name))]
        arguments = ["--config-file", self.path(layout)] if self.needs_argument else []
        requests = layout.requests(self.name)
        return serving(self.name, self.application, layout.ports[self.name], requests, *arguments)


def _manage(program: str, *commands: str) -> Schema:
    return lambda layout: [[program, *command.split()] for command in commands]


def _keystone(layout: Layout) -> Sequence[Command]:
    urls = [
        part
        for kind in ("admin", "internal", "public")
        for part in (f"--bootstrap-{kind}-url", layout.url("keystone"))
    ]
    owner = ["--keystone-user", pwd.getpwuid(os.geteuid()).pw_name]
    owner += ["--keystone-group", grp.getgrgid(os.getegid()).gr_name]
    bootstrap = ["bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", REGION, *urls]
    parts = (["db_sync"], ["fernet_setup", *owner], ["credential_setup", *owner], bootstrap)
    return [["keystone-manage", *part] for part in parts]


def _nova(layout: Layout) -> Sequence[Command]:
    # Nova fills in host and port from its own configuration, for they change from run to run.
    server = "{scheme}://{username}:{password}@{hostname}:{port}"
    cell0 = ["map_cell0", "--database_connection", f"{server}/nova_cell0?{{query}}"]
    cell1 = ["create_cell", "--name", "cell1", "--transport-url", f"{server}/"]
    cell1 += ["--database_connection", f"{server}/nova_cell1?{{query}}"]
    parts = (["api_db", "sync"], ["cell_v2", *cell0], ["cell_v2", *cell1], ["db", "sync"])
    return [["nova-manage", *part] for part in parts]


def _service(name: str, config: Callable[[Layout], Ini], schema: Schema, **fields: typing.Any) -> Service:
    """A service whose files, database and modules have the usual names, but for those that are given."""
    usual = {"application": f"{name}.wsgi.api", "file": f"{name}.conf", "databases": [name]}
    return Service(name=name, config=config, schema=schema, **{**usual, **fields})


KEYSTONE = _service("keystone", configuration.keystone, _keystone, endpoints=[("identity", "")])
GLANCE = _service(
    "glance",
    configuration.glance,
    _manage("glance-manage", "db_sync"),
    file="glance-api.conf",
    endpoints=[("image", "")],
    probe="/v2/images",
)
PLACEMENT = _service(
    "placement",
    configuration.placement,
    _manage("placement-manage", "db sync"),
    endpoints=[("placement", "")],
    probe="/resource_providers",
)
NEUTRON = _service(
    "neutron",
    configuration.neutron,
    _manage("neutron-db-manage", "upgrade heads"),
    endpoints=[("network", "")],
    probe="/v2.0/networks",
)
NOVA = _service(
    "nova",
    configuration.nova,
    _nova,
    application="nova.wsgi.osapi_compute",
    endpoints=[("compute", "/v2.1")],
    databases=["nova_api", "nova_cell0", "nova_cell1"],
    probe="/v2.1/flavors",
    daemons=[
        Daemon("nova-conductor", "conductor"),
        Daemon("nova-scheduler", "scheduler"),
        Daemon("nova-compute", "compute.cloud", "nova_compute.py"),
    ],
    files=nova_files,
)
CINDER = _service(
    "cinder",
    configuration.cinder,
    _manage("cinder-manage", "db sync"),
    endpoints=[("block-storage", "/v3"), ("volumev3", "/v3")],
    probe="/v3/types",
    # Until its scheduler has learned the backend's abilities, each volume fails.
    offers=["/v3/scheduler-stats/get_pools"],
    daemons=[
        Daemon("cinder-scheduler", "cinder-scheduler"),
        Daemon("cinder-volume", "cinder-volume.cloud@nothing"),
        Daemon("cinder-backup", "cinder-backup.cloud"),
    ],
    needs_argument=True,
)
OCTAVIA = _service(
    "octavia",
    configuration.octavia,
    _manage("octavia-db-manage", "upgrade head"),
    endpoints=[("load-balancer", "")],
    probe="/v2/lbaas/loadbalancers",
    daemons=[Daemon("octavia-worker", "octavia_provisioning_v2")],
    needs_argument=True,
    files=octavia_files,
)
BARBICAN = _service(
    "barbican",
    configuration.barbican,
    lambda _: [],
    application="barbican_application",
    file=".barbican/barbican.conf",
    endpoints=[("key-manager", "")],
    probe="/v1/secrets",
    environment=barbican_environment,
)
SWIFT = _service(
    "swift",
    configuration.swift,
    lambda _: [],
    script="swift_server.py",
    file="proxy.conf",
    endpoints=[("object-store", "/v1/AUTH_$(project_id)s")],
    databases=[],
)
GNOCCHI = _service(
    "gnocchi",
    configuration.gnocchi,
    _manage("gnocchi-upgrade", "--sacks-number 2"),
    application="gnocchi.wsgi.api",
    file=".gnocchi/gnocchi.conf",
    endpoints=[("metric", "")],
    probe="/v1/metric",
    daemons=[Daemon("gnocchi-metricd", "")],
    environment=home("gnocchi"),
)
AODH = _service(
    "aodh",
    configuration.aodh,
    _manage("aodh-dbsync", ""),
    file=".aodh/aodh.conf",
    endpoints=[("alarming", "")],
    probe="/v2/alarms",
    daemons=[Daemon("aodh-evaluator", ""), Daemon("aodh-notifier", "alarming.sample")],
    environment=home("aodh"),
    after=["gnocchi"],
)
DESIGNATE = _service(
    "designate",
    configuration.designate,
    _manage("designate-manage", "database sync"),
    endpoints=[("dns", "")],
    probe="/v2/zones",
    daemons=[
        Daemon("designate-central", "central", is_asked=True),
        Daemon("designate-worker", "worker"),
        Daemon("designate-producer", "producer"),
        Daemon("designate-mdns", ""),
    ],
    files=designate_files,
    environment=lambda layout: {"OS_DESIGNATE_CONFIG_DIR": str(layout.config("designate"))},
    settings=lambda layout: [["designate-manage", "pool", "update", "--file", str(pool_file(layout))]],
    ports=["designate-mdns"],
)
MANILA = _service(
    "manila",
    configuration.manila,
    _manage("manila-manage", "db sync"),
    endpoints=[("shared-file-system", "/v2")],
    probe="/v2/share-networks",
    # Until its scheduler has learned the backends' abilities, each share fails.
    offers=[f"/v2/scheduler-stats/pools?backend={backend}" for backend in ("plain", "served")],
    daemons=[
        Daemon("manila-scheduler", "manila-scheduler"),
        Daemon("manila-share", "manila-share.cloud@served"),
    ],
    needs_argument=True,
)
MISTRAL = _service(
    "mistral",
    configuration.mistral,
    _manage("mistral-db-manage", "upgrade head"),
    application="mistral.wsgi",
    file=".mistral/mistral.conf",
    endpoints=[("workflowv2", "/v2")],
    probe="/v2/workflows",
    daemons=[Daemon("mistral-server", "mistral_engine")],
    environment=home("mistral"),
)
SERVICES = (KEYSTONE, GLANCE, PLACEMENT, NEUTRON, NOVA, CINDER)
"""The services in the order of their starts; one that another asks while it starts comes before it."""
OPTIONAL = (BARBICAN, OCTAVIA, SWIFT, GNOCCHI, AODH, DESIGNATE, MANILA, MISTRAL)
"""Services that a cloud starts, and enters into its service catalog, once somebody asks for them.  Their
databases are made with those of the others."""
ALL = (*SERVICES, *OPTIONAL)
