"""Handlers: from a request to the use case, and from its result to a reply."""
