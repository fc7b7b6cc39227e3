"""Errors of the message bus."""

import oslo_messaging
from amqp.exceptions import AMQPError

BROKER_ERRORS = (oslo_messaging.MessagingException, AMQPError)
"""Errors of a broker that is unavailable, or that refuses a user or a vhost.

oslo.messaging (18.3) has no error of its own for a refusal: it passes on that of the driver's library.
"""
