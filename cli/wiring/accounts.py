"""The service's own accounts at Keystone: whether Keystone gives them a token."""

import typing
from collections.abc import Callable, Collection

from keystoneauth1 import loading
from keystoneauth1.exceptions import (
    ClientException,
    Forbidden,
    MissingRequiredOptions,
    NoMatchingPlugin,
    NotFound,
    Unauthorized,
)
from keystoneauth1.session import Session
from oslo_config import cfg

from ...api.health import AccountHealth
from ..config.errors import WrongConfiguration
from ..config.sections import Settings
from .service_account import SECTION as API
from .service_account import make_session, register_options
from .trusts import SECTION as TRUSTEE
from .trusts import trustee_session

ASK_KEYSTONE = "trusts"
"""The method of later access for users that needs an account."""
Opened = Callable[[cfg.ConfigOpts], Session]


def _own_session(conf: cfg.ConfigOpts) -> Session:
    register_options(conf)
    return make_session(conf, loading.load_auth_from_conf_options(conf, API))


def accounts(conf: cfg.ConfigOpts) -> dict[str, Opened]:
    """Return the sections of the accounts that are used, each with a function that opens its session."""
    if not Settings(conf).auth.has_keystone:
        return {}
    has_trusts = Settings(conf).delegation.method == ASK_KEYSTONE
    return {API: _own_session, **({TRUSTEE: trustee_session} if has_trusts else {})}


class KeystoneSilent(WrongConfiguration):
    """Keystone does not answer, so that it is unknown whether it accepts an account."""


def check_account(conf: cfg.ConfigOpts, section: str) -> None:
    """Get a token with an account.

    :raises WrongConfiguration: the account is not complete, or Keystone refuses it.
    :raises KeystoneSilent: Keystone does not answer.
    """
    try:
        session = accounts(conf)[section](conf)
        auth: typing.Any = session.auth
        auth.get_access(session)
    except (Unauthorized, Forbidden) as error:
        raise WrongConfiguration(
            f"[{section}]: Keystone refuses the service's own account: {error}"
        ) from error
    except NotFound as error:
        raise WrongConfiguration(
            f"[{section}] auth_url: it is not an address of Keystone: {error}"
        ) from error
    except (MissingRequiredOptions, NoMatchingPlugin, cfg.Error, TypeError, ValueError) as error:
        raise WrongConfiguration(f"[{section}]: {error}") from error
    except ClientException as error:
        raise KeystoneSilent(f"[{section}] auth_url: Keystone does not answer: {error}") from error


def account_health(conf: cfg.ConfigOpts, sections: Collection[str] = (API, TRUSTEE)) -> AccountHealth:
    """Make the check of accounts.

    :param sections: the sections of the accounts that this daemon uses.
    """
    return AccountHealth(lambda: _refused(conf, sections))


def _refused(conf: cfg.ConfigOpts, sections: Collection[str]) -> str | None:
    for section in sorted(accounts(conf).keys() & sections):
        try:
            check_account(conf, section)
        except KeystoneSilent:
            continue
        except WrongConfiguration as error:
            return str(error)
    return None
