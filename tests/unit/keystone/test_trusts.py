"""Creations of trusts at a Keystone that is under load."""

import pytest
from keystoneauth1 import exceptions
from stoker.keystone.delegated_auth import DelegationRefused, NoAnswer
from stoker.keystone.trusts import PAUSES, REFUSALS, KeystoneTrusts
from stoker.resources.contract.cloud import Trustor

WHO = Trustor(user_id="u", project_id="p", roles=["member"], token="secret")
REFUSALS_OF_LOAD = [exceptions.Forbidden("no"), exceptions.NotFound("no such user")]


class Answer:
    def __init__(self, body):
        self._body = body

    def json(self):
        return self._body


class Session:
    """The service's account, at a Keystone that fails in these ways before it creates a trust.

    :ivar lost: the failures create the trust all the same.
    """

    is_silent = False

    def __init__(self, *failures, lost=False):
        self.failures = list(failures)
        self.lost = lost
        self.trusts = []

    def get_user_id(self):
        return "stoker"

    def post(self, path, **options):
        failure = self.failures.pop(0) if self.failures else None
        if failure is None or self.lost:
            self.trusts.append({**options["json"]["trust"], "id": f"t{len(self.trusts)}"})
        if failure is not None:
            raise failure
        return Answer({"trust": self.trusts[-1]})

    def get(self, path, **options):
        if self.is_silent:
            raise exceptions.ConnectFailure("silent")
        return Answer({"trusts": self.trusts})


def delegated(session, pauses):
    return KeystoneTrusts(lambda trust: session, roles=(), sleep=pauses.append).delegate(WHO, "mark")


@pytest.mark.parametrize("failure", [*REFUSALS_OF_LOAD, exceptions.InternalServerError("locked")])
def test_a_creation_that_fails_under_load_is_repeated(failure):
    session = Session(failure, failure)
    pauses = []
    assert delegated(session, pauses) == {"trust": "t0"}
    assert pauses == list(PAUSES[:2])


@pytest.mark.parametrize("failure", REFUSALS_OF_LOAD)
def test_a_refusal_is_final_after_some_tries(failure):
    session = Session(*[failure] * 9)
    pauses = []
    with pytest.raises(DelegationRefused):
        delegated(session, pauses)
    assert len(pauses) == REFUSALS


def test_a_token_that_is_refused_is_not_tried_again():
    pauses = []
    with pytest.raises(DelegationRefused):
        delegated(Session(exceptions.Unauthorized("old")), pauses)
    assert pauses == []


def test_a_trust_of_a_lost_answer_is_found():
    session = Session(exceptions.ConnectFailure("lost"), lost=True)
    pauses = []
    assert delegated(session, pauses) == {"trust": "t0"}
    assert len(session.trusts) == 1


def test_a_keystone_that_does_not_answer_is_unavailable_in_the_end():
    session = Session(*[exceptions.ConnectFailure("http://inside")] * 9)
    pauses = []
    session.is_silent = True
    with pytest.raises(NoAnswer):
        delegated(session, pauses)
    assert pauses == list(PAUSES)


def test_a_refusal_after_a_lost_answer_does_not_say_that_there_is_no_trust():
    failures = (exceptions.ConnectFailure("lost"), exceptions.Unauthorized("old"))
    session = Session(*failures, lost=True)
    session.is_silent = True
    with pytest.raises(NoAnswer):
        delegated(session, [])
