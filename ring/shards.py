"""Shards: fixed buckets of stacks, so that ownership is a small table however many stacks there are."""

import hashlib

DEFAULT_SHARD_COUNT = 4096


def shard_of(stack_id: str, shard_count: int) -> int:
    """Return the shard of a stack: the first 8 bytes of BLAKE2b of its id, big-endian, modulo the count.

    It is the same on every machine and in every release, for it is stored with the stack.

    >>> shard_of("6ba7b810-9dad-11d1-80b4-00c04fd430c8", 4096)
    3757
    """
    digest = hashlib.blake2b(stack_id.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % shard_count
