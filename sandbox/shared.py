"""The pool of this process.

There is one for the process, not one for each collaborator that evaluates: a program with three conductors
and an API has as many helpers as one with a conductor.  Functions of templates stay functions of their
arguments; where they are computed shows in no result, so nothing is handed down for it.  Programs configure
it when they start; without that it has the default limits, so that nothing of a user's is ever evaluated in
this process.
"""

import contextlib
import typing
from collections.abc import Sequence

from . import accounts
from .limits import HelperLimits
from .pool import HelperPool

Json = typing.Any
_pool = HelperPool(HelperLimits())


def configure(limits: HelperLimits) -> None:
    """Set the limits; what runs is ended.  Called by a program's main thread before it serves."""
    global _pool
    if limits != _pool.limits:
        before, _pool = _pool, HelperPool(limits)
        before.close()


def pool() -> HelperPool:
    """Return the pool of this process."""
    return _pool


def charged_to(owner: str) -> contextlib.AbstractContextManager[None]:
    """Charge what this thread evaluates in the body to a project.

    To its share of the helpers, and to what all evaluations of one request, or of one step, may take.
    """
    return accounts.charged_to(owner, _pool.limits)


def yaql(expression: str, data: Json, *, budget: accounts.EvaluationBudget | None = None) -> Json:
    """See HelperPool.yaql.

    :param budget: is charged, too.
    """
    budgets, owner = _charged(budget)
    return _pool.yaql(expression, data, budgets=budgets, owner=owner)


def match(pattern: str, text: str | None, *, budget: accounts.EvaluationBudget | None = None) -> bool:
    """See HelperPool.match.

    :param budget: is charged, too.
    """
    budgets, owner = _charged(budget)
    return _pool.match(pattern, text, budgets=budgets, owner=owner)


def beginning(pattern: str, texts: Sequence[str]) -> list[str]:
    """See HelperPool.beginning."""
    budgets, owner = _charged(None)
    return _pool.beginning(pattern, texts, budgets=budgets, owner=owner)


def _charged(budget: accounts.EvaluationBudget | None) -> tuple[list[accounts.EvaluationBudget], str]:
    account = accounts.current()
    budgets = [found for found in (account, budget) if found is not None]
    return budgets, "" if account is None else account.owner
