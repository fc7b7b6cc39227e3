"""Rules for servers and key pairs that the cloud would refuse as it is now; pure."""

from collections.abc import Iterator, Mapping

from ....shapes import Json, JsonMap
from ...contract import (
    Certainty,
    CloudFacts,
    KnownResource,
    Made,
    Members,
    Misfit,
    PlannedStack,
    QueryValue,
    Thing,
)
from ..cinder.fits import volumes_in_another_zone, volumes_in_use
from ..images import image_misfits, image_of
from ..limits import allowance, detailed
from ..lists import named
from ..neutron.network_rules import SERVER
from .body import WITH_FILES, encoded
from .quota_needs import FLAVOR, flavor_of, flavors_of

AGGREGATE = "OS::Nova::HostAggregate"
KEY_PAIR = "OS::Nova::KeyPair"


def images_that_do_not_fit(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the images that are not active, or need more than the flavor of their server has."""
    for server in stack.new_of_type(SERVER):
        flavor = flavor_of(server, stack.known, cloud) or {}
        image = image_of(server.thing("image"), cloud)
        if image is not None:
            # The disk of a flavor is 0 where the image decides.
            yield from image_misfits(server.name, ("image",), image, flavor.get("disk") or None)
            yield from _too_little_memory(server, image, flavor)
        for index, entry in enumerate(server.values.get("block_device_mapping_v2") or ()):
            path = ("block_device_mapping_v2", index, "image")
            source = image_of(server.thing(*path), cloud)
            if source is not None:
                yield from image_misfits(server.name, path, source, entry.get("volume_size"))


def _too_little_memory(server: KnownResource, image: JsonMap, flavor: JsonMap) -> Iterator[Misfit]:
    needed, available = image.get("min_ram"), flavor.get("ram")
    if isinstance(needed, int) and isinstance(available, int) and needed > available:
        yield Misfit(
            server.name,
            f"the image needs {needed} MiB of memory, but the flavor has {available}",
            ("flavor",),
            str(needed),
            str(available),
            "Use a larger flavor.",
        )


def flavors_that_are_disabled(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the servers whose flavor no new server may have.

    The service shows a disabled one to those who know its id, but not in a list.
    """
    makes_flavors = any(stack.known.of_type(FLAVOR)) or stack.may_change_elsewhere(FLAVOR)
    for server in stack.new_of_type(SERVER):
        flavor = server.thing("flavor")
        flavors = flavors_of(cloud) if isinstance(flavor, str) and not makes_flavors else None
        if flavors is None:
            continue
        matches = [*flavors.where("id", str(flavor)), *flavors.where("name", str(flavor))]
        if all(match.get("OS-FLV-DISABLED:disabled") is True for match in matches):
            yield Misfit(
                server.name,
                f"the flavor {flavor} is disabled, or does not exist",
                ("flavor",),
                advice="Use another flavor: `openstack flavor list` shows them.",
            )


def zones_that_do_not_exist(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the servers whose availability zone does not exist, or is down."""
    makes_zones = any(stack.known.of_type(AGGREGATE)) or stack.may_change_elsewhere(AGGREGATE)
    for server in stack.new_of_type(SERVER):
        if server.values.get("availability_zone", "unknown") is None:
            yield from _without_a_zone(server, cloud)
            continue
        zone = server.thing("availability_zone")
        if not isinstance(zone, str) or ":" in zone or makes_zones:
            continue  # An administrator names a host, too, or makes the zone.
        zones = cloud.members("compute", "/os-availability-zone", "availabilityZoneInfo")
        if zones is not None and zone not in (names := open_zones(zones)):
            yield Misfit(
                server.name,
                f"there is no availability zone {zone} for servers",
                ("availability_zone",),
                zone,
                ", ".join(names),
                "Use one that there is, or none.",
            )


def _without_a_zone(server: KnownResource, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield a server for which no host may be chosen: administrators have disabled all compute services."""
    zones = cloud.members("compute", "/os-availability-zone", "availabilityZoneInfo")
    if zones and not open_zones(zones):
        yield Misfit(
            server.name,
            "no availability zone has a compute service that is enabled",
            advice="Ask the operator: there is no host for any server.",
        )


def open_zones(zones: Json) -> list[str]:
    """Return the names of the zones that are not down."""
    return [
        str(zone.get("zoneName")) for zone in zones if (zone.get("zoneState") or {}).get("available", True)
    ]


def key_pairs_that_exist(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the key pairs whose names are taken."""
    taken: set[Json] | None = None
    for pair in stack.new_of_type(KEY_PAIR):
        name = pair.thing("name")
        is_own = pair.values.get("user", "unknown") is None
        if pair.name not in stack.created or not isinstance(name, str) or not is_own:
            continue
        if taken is None:
            pairs = cloud.members("compute", "/os-keypairs", "keypairs") or ()
            taken = {(entry.get("keypair") or {}).get("name") for entry in pairs}
        if name in taken:
            yield Misfit(
                pair.name,
                f"you have a key pair {name} already",
                ("name",),
                advice="Use another name, or the key pair that there is.",
                certainty=stack.of_taken(name),
            )


def ambiguous_groups(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the names that several security groups have; Nova looks at those of the project only."""
    query: Mapping[str, QueryValue] = {"project_id": cloud.project_id, "fields": ("id", "name")}
    for server in stack.new_of_type(SERVER):
        for index, _ in enumerate(server.values.get("security_groups") or ()):
            name = server.thing("security_groups", index)
            if not isinstance(name, str):
                continue
            groups = cloud.members("network", "/security-groups", "security_groups", **query) or Members()
            ids = [str(group.get("id")) for group in groups.where("name", name)]
            count = len(ids)
            if count > 1 and not groups.where("id", name):
                yield Misfit(
                    server.name,
                    f"{count} security groups have the name {name}",
                    ("security_groups", index),
                    advice="Use the id.",
                    certainty=stack.of_taken(*ids),
                )


def disks_above_the_flavor(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the swap and ephemeral disks that are larger than the flavor of their server allows."""
    for server in stack.new_of_type(SERVER):
        entries = server.values.get("block_device_mapping_v2") or ()
        for name, fields, unit in _EXTRA_DISKS:
            sizes = [(index, entry[name]) for index, entry in enumerate(entries) if entry.get(name)]
            flavor = flavor_of(server, stack.known, cloud) if sizes else None
            values = [flavor[field] for field in fields if field in flavor] if flavor else []
            if not values:
                continue
            # The service adds up the disks; a flavor without one has an empty text.
            needed, allowed = sum(size for _, size in sizes), values[0] or 0
            if isinstance(allowed, int) and needed > allowed:
                yield Misfit(
                    server.name,
                    f"{name} is {needed} {unit}, but the flavor allows {allowed}",
                    ("block_device_mapping_v2", sizes[-1][0], name),
                    str(needed),
                    str(allowed),
                    "Use a smaller disk, or a flavor that allows it.",
                )


_EXTRA_DISKS = (
    ("swap_size", ("swap",), "MiB"),
    ("ephemeral_size", ("OS-FLV-EXT-DATA:ephemeral", "ephemeral"), "GiB"),
)
"""Properties of disks, each with the flavor's field for it, as the service and as a template has it."""


def metadata_above_the_limit(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the servers with more metadata items than the project's servers may have."""
    for server in stack.new_of_type(SERVER):
        count = len(server.values.get("metadata") or ())
        most = allowance(cloud, "compute", "metadata_items") if count else None
        if most is not None and 0 <= most.limit < count:
            advice = "Put several values into one item, or pass them as user_data."
            yield _above(server, "metadata", "metadata items", (count, most.limit), advice)


def files_above_the_limits(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the servers with more injected files, or larger ones, than the project's servers may have."""
    path = f"/os-quota-sets/{cloud.project_id}/detail"
    for server in stack.new_of_type(SERVER):
        files = server.values.get("personality")
        if not files:
            continue
        limits = cloud.entry("compute", path, "quota_set", microversion=WITH_FILES)
        amounts = {
            "injected_files": ("files", len(files)),
            "injected_file_path_bytes": ("characters in the path of a file", max(map(len, files))),
            "injected_file_content_bytes": (
                "characters of base64 in a file",
                max(len(encoded(text)) if isinstance(text, str) else 0 for text in files.values()),
            ),
        }
        for name, (unit, amount) in amounts.items():
            most = detailed(limits, name)
            if most is not None and 0 <= most.limit < amount:
                advice = "Pass files as user_data, or as a software config."
                yield _above(server, "personality", unit, (amount, most.limit), advice)


def _above(
    server: KnownResource, name: str, unit: str, amount_and_limit: tuple[int, int], advice: str
) -> Misfit:
    """Return the misfit of a property that has more of something than a server may have."""
    amount, limit = amount_and_limit
    text = f"the server has {amount} {unit}, above the limit of {limit}"
    return Misfit(server.name, text, (name,), str(amount), str(limit), advice)


def groups_that_are_full(stack: PlannedStack, cloud: CloudFacts) -> Iterator[Misfit]:
    """Yield the server groups with more members than they may have, and those that need many hosts."""
    by_group: dict[Thing, list[KnownResource]] = {}
    for server in stack.new_of_type(SERVER):
        if (group := server.thing("scheduler_hints", "group")) is not None:
            by_group.setdefault(group, []).append(server)
    for group, servers in by_group.items():
        name, policy, members = _group(group, stack, cloud)
        total = members + len(servers)
        limit = allowance(cloud, "compute", "server_group_members")
        if limit is not None and 0 <= limit.limit < total:
            yield Misfit(
                servers[-1].name,
                f"the server group {name} would have {total} members, above the limit of {limit.limit}",
                ("scheduler_hints", "group"),
                str(total),
                str(limit.limit),
                "Use several groups, or ask the operator for a larger quota of server_group_members.",
                # Only those of the user count, and the group does not say whose its members are.  Servers
                # that are made at the same moment may all pass: the service counts before it adds them.
                Certainty.LIKELY if len(servers) > limit.limit else Certainty.NOT_KNOWN,
            )
        elif policy == "anti-affinity" and total > 1:
            yield Misfit(
                servers[-1].name,
                f"the {total} servers of the group {name} need different hosts, which nobody may count",
                ("scheduler_hints", "group"),
                certainty=Certainty.NOT_KNOWN,
                advice="With soft-anti-affinity servers start even if the hosts do not suffice.",
            )


def _group(group: Thing, stack: PlannedStack, cloud: CloudFacts) -> tuple[str, str, int]:
    """Return the name of a server group, its policy, and the number of its members; "": not known."""
    if isinstance(group, Made):
        made = stack.made(group)
        policies = made.values.get("policies") if made is not None else None
        return group.resource, str(policies[0]) if policies else "", 0
    entry = named(cloud.members("compute", "/os-server-groups", "server_groups"), group) or {}
    return group, str(entry.get("policy") or ""), len(entry.get("members") or ())


SERVER_FITS = (
    flavors_that_are_disabled,
    images_that_do_not_fit,
    disks_above_the_flavor,
    zones_that_do_not_exist,
    metadata_above_the_limit,
    files_above_the_limits,
    groups_that_are_full,
    ambiguous_groups,
    volumes_in_use,
    volumes_in_another_zone,
)
