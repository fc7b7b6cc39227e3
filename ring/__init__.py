"""Membership of the conductors, and the hash ring that maps shards to them."""
