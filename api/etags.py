"""Entity tags (RFC 9110, 8.8.3 and 13.1.2): clients ask by them whether a copy is the latest."""


def has_latest(sent: str, tag: str) -> bool:
    """Return whether a client has the present version of an answer.

    :param sent: the header If-None-Match; empty: the request has none.
    :param tag: the tag of the present version, with its quotes.
    """
    return not {"*", tag}.isdisjoint(part.strip().removeprefix("W/") for part in sent.split(","))
