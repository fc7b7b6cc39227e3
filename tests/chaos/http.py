"""Requests of users and guests, to any process of the API."""

import random
import time
import typing
from collections.abc import Mapping

import requests
from chaos.history import Outcome

Json = typing.Any
TIMEOUT = (3.0, 30.0)
"""Seconds for a connection, and for an answer."""


class Answer(typing.NamedTuple):
    """An answer, or that there was none.

    :ivar status: 0: the request was not sent; -1: it was sent, and not answered.
    """

    status: int
    body: Json
    began: float
    ended: float
    api: str
    location: str = ""

    @property
    def outcome(self) -> Outcome:
        """Return the outcome of a request that changes something."""
        if 200 <= self.status < 400:
            return Outcome.ACCEPTED
        return Outcome.REFUSED if self.status == 0 or 400 <= self.status < 500 else Outcome.UNKNOWN


class Http:
    """Requests to any of an API's processes.  For one thread.

    :param urls: the roots of the processes by name.
    """

    def __init__(self, urls: Mapping[str, str], chosen_by: random.Random) -> None:
        self._urls = urls
        self._random = chosen_by
        self._session = requests.Session()

    def request(self, method: str, path: str, body: Json = None, *, form: Json = None) -> Answer:
        """Send a request to a process that is chosen by chance.

        :param form: fields of a form, in place of a JSON body.
        """
        api = self._random.choice(sorted(self._urls))
        began = time.time()
        try:
            response = self._session.request(
                method, self._urls[api] + path, json=body, data=form, timeout=TIMEOUT, allow_redirects=False
            )
            content = response.json() if response.content else None
        except requests.ConnectTimeout:
            return Answer(0, None, began, time.time(), api)
        except requests.RequestException as error:
            is_unsent = "NewConnectionError" in repr(error)
            return Answer(0 if is_unsent else -1, None, began, time.time(), api)
        location = response.headers.get("Location", "")
        return Answer(response.status_code, content, began, time.time(), api, location)
