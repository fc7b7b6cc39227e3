"""Answers that are kept for others: which, for whom, and how many."""

import typing
from collections.abc import Callable

import pytest
from stoker.api.authenticator import NoAuthentication
from stoker.api.context import RequestContext
from stoker.api.operations import Operation, Request
from stoker.api.reply import Reply
from stoker.api.settings import ApiLimits
from stoker.api.shared_answers import SharedAnswers

Json = typing.Any
MIB = 1024 * 1024


class ByUser(NoAuthentication):
    """Lets one user have the type T."""

    def may_use(self, caller: RequestContext, type_name: str) -> bool:
        return caller.user == "olga" or type_name != "T"


class Shown:
    """An operation, and the answers that it has made.

    :ivar made: how many.
    """

    def __init__(self, handle: Callable[[Request], Reply], shared: frozenset[str] | None) -> None:
        self.made = 0
        self._handle = handle
        self._operation = Operation(self._answer, None, shared=shared)
        self._answers = SharedAnswers(monotonic=lambda: 0.0)

    def _answer(self, request: Request) -> Reply:
        self.made += 1
        return self._handle(request)

    def ask(self, user: str = "olga", accepted: str = "max-age=1", **query: list[str]) -> Reply:
        services: Json = None
        request = Request(
            services=services,
            caller=RequestContext(project_id="p", user=user),
            auth=ByUser(),
            limits=ApiLimits(),
            path={},
            query=query,
            body=None,
            base_url="",
            headers={"CACHE-CONTROL": accepted},
        )
        return self._answers.answer(request, self._operation)


def empty(request: Request) -> Reply:
    return Reply({})


def test_one_answer_is_for_all_orders_of_a_query() -> None:
    shown = Shown(empty, frozenset({"a", "b"}))
    shown.ask(a=["1"], b=["2"])
    shown.ask(b=["2"], a=["1"])
    assert shown.made == 1
    shown.ask(a=["2"], b=["1"])
    assert shown.made == 2


@pytest.mark.parametrize(("length", "made"), [(2048, 1), (2049, 2)])
def test_a_request_that_is_longer_than_consoles_need_is_not_kept(length: int, made: int) -> None:
    shown = Shown(empty, frozenset({"a"}))
    frame = len('["", {}, {"a": [""]}, ["p", false]]')
    for _ in range(2):
        shown.ask(a=["x" * (length - frame)])
    assert shown.made == made


@pytest.mark.parametrize("accepted", ["", "no-cache", "max-age=0"])
def test_who_accepts_no_old_answer_gets_a_new_one(accepted: str) -> None:
    shown = Shown(empty, frozenset())
    shown.ask()
    assert shown.ask(accepted=accepted).with_text().text == b"{}"
    assert shown.made == 2


def test_an_operation_that_shares_nothing_answers_each_request() -> None:
    shown = Shown(empty, None)
    replies = [shown.ask(), shown.ask()]
    assert shown.made == 2
    assert [reply.text for reply in replies] == [b"{}", b"{}"]


def test_who_may_use_the_same_types_has_the_same_answer() -> None:
    shown = Shown(
        lambda request: Reply({"may": request.may_use("T"), "both": request.may_use("U")}), frozenset()
    )
    texts = [shown.ask(user).text for user in ("olga", "olga", "ann", "olga")]
    of_olga = b'{"may":true,"both":true}'
    assert texts == [of_olga, of_olga, b'{"may":false,"both":true}', of_olga]
    assert shown.made == 2


@pytest.mark.parametrize(("size", "made"), [(16 * MIB, 2), (16 * MIB + 1, 3)])
def test_the_answers_that_are_kept_have_32_mib(size: int, made: int) -> None:
    text = b" " * size
    shown = Shown(lambda request: Reply(text=text), frozenset({"a"}))
    for name in ("1", "2", "1"):
        assert shown.ask(a=[name]).text is text
    assert shown.made == made
