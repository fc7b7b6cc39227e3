"""``openstack stack adopt-resources``: makes a stack of what exists in the cloud."""

import argparse
import dataclasses
import json
import sys
import typing
from collections.abc import Iterable, Iterator, Mapping

import yaml
from heatclient.common import event_utils
from osc_lib import exceptions as exc
from osc_lib.command import command

from ..observe.terminal import write_document, write_lines, write_question
from ..shapes import JsonMap
from .access import client_of
from .adopted_template import ATTACHMENT, DELETE, RETAIN, Adoption, describe
from .cloud_objects import KEY_PAIR, KINDS, ROUTER, SUBNET, CloudObjects, Inventory, RouterLink

DEEPEST = 5
"""Levels of nested stacks whose resources count as those of a stack."""
Objects = dict[str, list[JsonMap]]
Owners = Mapping[str, str]
"""Names of stacks by the physical ids of their resources; those of key pairs behind their type."""


class AdoptResources(command.Command):
    """Make a stack of what exists in the cloud, and change nothing there.

    The interfaces of a router and the attachments of a server's volumes are adopted with it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser: argparse.ArgumentParser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="<stack>", help="Name of the new stack")
        for kind in KINDS:
            parser.add_argument(
                kind.option,
                metavar=f"<{kind.option[2:]}>",
                dest=kind.noun,
                action="append",
                default=[],
                help=f"Adopt a {kind.noun} (name or ID; may be given several times)",
            )
        parser.add_argument(
            "--router-interface",
            metavar="<router>:<subnet>",
            action="append",
            default=[],
            help="Adopt an interface of a router that is not adopted itself (may be given several times)",
        )
        parser.add_argument(
            "--all", action="store_true", help="Adopt all objects of the project that belong to no stack"
        )
        parser.add_argument(
            "--deletion-policy",
            choices=(RETAIN, DELETE),
            default=RETAIN,
            help="Whether the objects stay when the stack is deleted, or are deleted (default: %(default)s)",
        )
        parser.add_argument(
            "--template", metavar="<file>", help="File to write the template into; later updates need it"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="Write the template only, and adopt nothing"
        )
        parser.add_argument("--timeout", metavar="<minutes>", type=int, help="Timeout of the stack")
        parser.add_argument("--wait", action="store_true", help="Wait until the stack is complete")
        parser.add_argument(
            "--yes", action="store_true", help="Do not ask for confirmation of --deletion-policy delete"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        client = client_of(self)
        manager = typing.cast(typing.Any, self.app).client_manager
        adoption = _adoption(CloudObjects(manager.sdk_connection), client, parsed_args)
        out = typing.cast(typing.Any, self.app).stdout
        for note in adoption.notes:
            write_lines(sys.stderr, f"Note: {note}")
        text = yaml.safe_dump(adoption.template, sort_keys=False, allow_unicode=True)
        if parsed_args.template:
            _write(parsed_args.template, text)
        if parsed_args.dry_run:
            if not parsed_args.template:
                write_document(out, text)
            return 0
        if parsed_args.deletion_policy == DELETE and not parsed_args.yes:
            _ask(adoption)
        fields = {"stack_name": parsed_args.name, "adopt_stack_data": json.dumps(adoption.document)}
        if parsed_args.timeout is not None:
            fields["timeout_mins"] = parsed_args.timeout
        stack_id = client.stacks.create(**fields)["stack"]["id"]
        for name, physical_id in adoption.ids.items():
            type_name = adoption.template["resources"][name]["type"]
            write_lines(out, f"{name}  {type_name}  {physical_id}")
        if parsed_args.wait:
            event_utils.poll_for_events(client, parsed_args.name, action="ADOPT")
        stack = client.stacks.get(stack_id, resolve_outputs=False)
        if stack.stack_status == "ADOPT_FAILED":
            raise exc.CommandError(f"Stack {stack.stack_name}: {stack.stack_status_reason}")
        write_lines(out, f"Stack {stack.stack_name} ({stack_id}): {stack.stack_status}")
        return 0


def _adoption(cloud: CloudObjects, client: typing.Any, parsed: argparse.Namespace) -> Adoption:
    """Return the objects that a command names, as the resources of a stack.

    :raises CommandError: it names none, one that does not exist, or one that another stack has.
    """
    owners = _owners(client)
    if parsed.all:
        if any(vars(parsed)[kind.noun] for kind in KINDS) or parsed.router_interface:
            raise exc.CommandError(
                "--all adopts all objects of the project: use either --all or the options that name objects"
            )
        objects = {
            kind.noun: [
                item for item in cloud.all(kind) if _key(kind.type, item[kind.id_field]) not in owners
            ]
            for kind in KINDS
        }
        inventory = cloud.inventory(objects)
    else:
        objects = _named(cloud, parsed)
        interfaces = list(_named_interfaces(cloud, parsed.router_interface))
        _refuse_owned(objects, interfaces, owners)
        inventory = cloud.inventory(objects, interfaces)
    if not any(objects.values()) and not inventory.interfaces:
        raise exc.CommandError(
            "All objects of the project belong to stacks already"
            if parsed.all
            else "Name the objects to adopt, such as --server <server>, or use --all"
        )
    return describe(_without_owned_interfaces(inventory, owners), parsed.deletion_policy)


def _named(cloud: CloudObjects, parsed: argparse.Namespace) -> Objects:
    """Return the objects that a command names, each once."""
    objects: Objects = {}
    for kind in KINDS:
        items = [cloud.find(kind, name) for name in vars(parsed)[kind.noun]]
        objects[kind.noun] = list({str(item[kind.id_field]): item for item in items}.values())
    return objects


def _named_interfaces(cloud: CloudObjects, texts: Iterable[str]) -> Iterator[RouterLink]:
    for text in texts:
        router_name, separator, subnet_name = text.rpartition(":")
        if not separator:
            raise exc.CommandError(f"--router-interface {text}: give it as ROUTER:SUBNET")
        router = str(cloud.find(ROUTER, router_name)["id"])
        interface = RouterLink(router, str(cloud.find(SUBNET, subnet_name)["id"]))
        if interface not in cloud.interfaces(router):
            raise exc.CommandError(f"Router {router_name} has no interface on the subnet {subnet_name}")
        yield interface


def _owners(client: typing.Any) -> Owners:
    """Return the stacks that have objects already."""
    return {
        _key(resource.resource_type, resource.physical_resource_id): stack.stack_name
        for stack in client.stacks.list()
        for resource in client.resources.list(stack.id, nested_depth=DEEPEST)
        # The physical id of an attachment is its volume's.
        if resource.physical_resource_id and resource.resource_type != ATTACHMENT
    }


def _key(type_name: str, physical_id: str) -> str:
    """Return the key of an object; the id of a key pair is a name, which other objects may have."""
    return f"{type_name} {physical_id}" if type_name == KEY_PAIR.type else physical_id


def _refuse_owned(objects: Objects, interfaces: Iterable[RouterLink], owners: Owners) -> None:
    """Check that no stack has the objects.

    :raises CommandError: a stack has one of them.
    """
    for kind in KINDS:
        for item in objects[kind.noun]:
            if stack := owners.get(_key(kind.type, item[kind.id_field])):
                name = item.get("name") or item["id"]
                raise exc.CommandError(f"The {kind.noun} {name} belongs to the stack {stack}")
    for interface in interfaces:
        if stack := owners.get(interface.physical_id):
            raise exc.CommandError(f"The interface {interface.physical_id} belongs to the stack {stack}")


def _without_owned_interfaces(inventory: Inventory, owners: Owners) -> Inventory:
    free = [item for item in inventory.interfaces if item.physical_id not in owners]
    return dataclasses.replace(inventory, interfaces=free)


def _write(path: str, text: str) -> None:
    """Write a file.

    :raises CommandError: it cannot be written.
    """
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise exc.CommandError(f"The template cannot be written: {error}") from error


def _ask(adoption: Adoption) -> None:
    """Ask whether deletions of the stack and of its resources may delete.

    :raises CommandError: the answer is not yes, or nobody can answer.
    """
    if not sys.stdin.isatty():
        raise exc.CommandError("--deletion-policy delete: --yes is required without a terminal")
    question = f"Deleting the stack will delete {len(adoption.ids)} objects of the cloud. Continue? [y/N] "
    write_question(sys.stderr, question)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise exc.CommandError("Nothing was adopted")
