"""The reasons why deployments wait: the last polls of their servers' guests, and the remedies."""

from collections.abc import Callable

from ..db.queries.guests import AwaitedGuest


def describe_guest(guest: AwaitedGuest, moment: Callable[[float], str]) -> str:
    """Describe the last poll of the guest whose signal is awaited, and the check that helps.

    :param moment: describes a time in seconds since the epoch.
    """
    server = f"server {guest.server_id}"
    if guest.asked_at is None:
        agents = "it runs, has the agents, and reaches [guests] metadata_url"
        return f"{server} has never asked for its metadata: check that {agents}"
    poll = f"last asked for its metadata {moment(guest.asked_at)}"
    if not guest.is_up_to_date:
        return f"{server} {poll}, and has not got the newest deployment: check that its agent still runs"
    return f"{server} {poll}, and has all of its deployments: see the log of its agent"
