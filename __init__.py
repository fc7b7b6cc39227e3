"""Stoker: an orchestration engine for OpenStack that runs Heat templates on a ring of conductors."""
