"""Opens the transport that client and server share."""

import typing

import oslo_messaging


def open_transport(conf: typing.Any, url: str) -> oslo_messaging.Transport:
    """Return a connection to the message bus.

    :param conf: an oslo.config ConfigOpts, for oslo.messaging's own options; must be the process-wide one,
        since oslo.messaging 18.3 registers its tracing and metrics options there only.
    :param url: e.g. ``rabbit://user:password@host:5672/vhost`` or ``kombu+memory://``.
    """
    return oslo_messaging.get_rpc_transport(conf, url=url)
