"""UUIDs of resources, and the names of nested stacks that Heat makes of them; pure.

Heat finds a nested stack by its name and id.  The name is that of the stack around it, that of the resource,
and twelve characters made of the 60 random bits of the resource's UUID.
"""

import base64
import functools
import hashlib
import uuid

LONGEST = 255
_CHARACTERS = 12
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def short_id(resource_uuid: str) -> str:
    """Return the characters that Heat makes of the UUID of a resource."""
    bits = uuid.UUID(resource_uuid).time << 4  # 60 bits fill 7.5 bytes: four more bits make them 8.
    return base64.b32encode(bits.to_bytes(8, "big"))[:_CHARACTERS].decode().lower()


def name_of(stack_name: str, resource_name: str, resource_uuid: str) -> str:
    """Return the name that Heat makes for what a resource is outside of its stack."""
    name = f"{stack_name.rstrip('*')}-{resource_name}-{short_id(resource_uuid)}"
    return name if len(name) <= LONGEST else f"{name[:2]}-{name[3 - LONGEST :]}"


def uuid_named(name: str, stack_name: str, resource_name: str) -> str | None:
    """Return a UUID of which Heat makes a name; None: of none it makes this name."""
    tail = name[-_CHARACTERS:]
    if len(tail) < _CHARACTERS or not set(tail).issubset(_ALPHABET):
        return None
    bits = functools.reduce(lambda number, letter: number << 5 | _ALPHABET.index(letter), tail, 0)
    candidate = _of_bits(bits, f"{stack_name}/{resource_name}/{name}")
    return candidate if name_of(stack_name, resource_name, candidate) == name else None


def uuid_of(stack_id: str, resource_id: int) -> str:
    """Return the UUID of a resource that Heat does not know: the same in each run."""
    text = f"{stack_id}/{resource_id}"
    digest = hashlib.sha256(text.encode()).digest()
    return _of_bits(int.from_bytes(digest[:8], "big") >> 4, text)


def arn(project_id: str, stack_name: str, stack_id: str) -> str:
    """Return the name by which Heat refers to a nested stack."""
    return f"arn:openstack:heat::{project_id}:stacks/{stack_name}/{stack_id}"


def _of_bits(bits: int, text: str) -> str:
    """Return a UUID of version 4 with these 60 bits as its time, and others made of a text."""
    rest = hashlib.sha256(text.encode()).digest()
    return str(
        uuid.UUID(
            fields=(
                bits & 0xFFFFFFFF,
                bits >> 32 & 0xFFFF,
                bits >> 48 & 0x0FFF | 0x4000,
                rest[0] & 0x3F | 0x80,
                rest[1],
                int.from_bytes(rest[2:8], "big"),
            )
        )
    )
