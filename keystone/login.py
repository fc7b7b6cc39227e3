"""Gives users of the console a token of Keystone's, for browsers that do not reach Keystone."""

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from keystoneauth1 import exceptions
from keystoneauth1.access import AccessInfo
from keystoneauth1.identity import generic
from keystoneauth1.identity.generic.base import BaseGenericPlugin
from keystoneauth1.plugin import AUTH_INTERFACE
from keystoneauth1.session import Session

from .delegated_auth import KeystoneUnavailable

T = typing.TypeVar("T")
KEYSTONE = {"interface": AUTH_INTERFACE, "service_type": "identity", "version": (3, 0)}
"""The Keystone that has issued the token, even if the service catalog names another one."""
DEFAULT_DOMAIN = "default"
"""The id of the domain of names without one, as Keystone makes it."""


class LoginRefused(Exception):
    """Keystone does not accept a password or token, or not for this project; the text says which."""


@dataclass(frozen=True)
class Login:
    """A token, and whom it is for.

    :ivar expires_at: end of the token's validity, as Keystone writes it.
    :ivar project_id: project of the token; None: the token is for no project.
    :ivar projects: ids and names of the projects for which the user can get a token.
    """

    token: str = field(repr=False)
    expires_at: str
    username: str
    roles: Sequence[str]
    project_id: str | None
    project_name: str | None
    projects: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Project:
    """The project of a login: an id, or a name in a domain; all None: the user's default one."""

    id: str | None = None
    name: str | None = None
    domain: str | None = None

    def scope(self) -> dict[str, typing.Any]:
        """Return the arguments of keystoneauth's plugins."""
        if self.id:
            return {"project_id": self.id}
        if not self.name:
            return {}
        return {"project_name": self.name, **_domain("project_domain", self.domain)}


class KeystoneLogin:
    """Logs users in.  Thread-safe.

    :param auth_url: address of Keystone, as this process reaches it.
    :param make_session: makes a session with the given plugin.
    """

    def __init__(self, auth_url: str, make_session: Callable[[BaseGenericPlugin], Session]) -> None:
        self._auth_url = auth_url
        self._make_session = make_session

    def by_password(self, username: str, password: str, domain: str | None, project: Project) -> Login:
        """Return the login of a user.

        :param domain: name of the user's domain; None: the default one.
        :raises LoginRefused: Keystone does not accept the password, or not for this project.
        :raises KeystoneUnavailable: Keystone does not answer, or fails.
        """
        who = {"username": username, "password": password, **_domain("user_domain", domain)}
        return self._login(generic.Password(self._auth_url, **who, **project.scope()))

    def by_token(self, token: str, project: Project) -> Login:
        """Return the login of the user that a token is for, with a new token; as `by_password`.

        :param project: all None: the one of the token.
        """
        if project == Project():
            plugin = generic.Token(self._auth_url, token=token)
            project = self._ask(plugin, lambda session: _project_of(session, token))
        return self._login(generic.Token(self._auth_url, token=token, **project.scope()))

    def _login(self, plugin: BaseGenericPlugin) -> Login:
        return self._ask(plugin, lambda session: _as_login(plugin.get_access(session), _projects(session)))

    def _ask(self, plugin: BaseGenericPlugin, ask: Callable[[Session], T]) -> T:
        try:
            return ask(self._make_session(plugin))
        except exceptions.MissingAuthMethods as error:
            raise LoginRefused("this user needs more than a password: log in with a token") from error
        except (exceptions.Unauthorized, exceptions.Forbidden, exceptions.NotFound) as error:
            raise LoginRefused("the user, the password or token, or the project is not correct") from error
        except exceptions.BadRequest as error:
            raise LoginRefused("Keystone cannot read the user, the token or the project") from error
        except exceptions.ClientException as error:
            raise KeystoneUnavailable(type(error).__name__) from error


def _domain(kind: str, name: str | None) -> dict[str, typing.Any]:
    return {f"{kind}_name": name} if name else {f"{kind}_id": DEFAULT_DOMAIN}


def _projects(session: Session) -> list[tuple[str, str]]:
    answer: typing.Any = session.get("/auth/projects", endpoint_filter=KEYSTONE).json()
    enabled = [item for item in answer["projects"] if item.get("enabled", True)]
    return sorted(((item["id"], item["name"]) for item in enabled), key=lambda pair: pair[1])


def _project_of(session: Session, token: str) -> Project:
    """Return the project that a token is for; it may be for none."""
    headers = {"X-Subject-Token": token}
    answer: typing.Any = session.get("/auth/tokens", endpoint_filter=KEYSTONE, headers=headers).json()
    return Project(id=answer["token"].get("project", {}).get("id"))


def _as_login(access: AccessInfo, projects: Sequence[tuple[str, str]]) -> Login:
    return Login(
        token=access.auth_token or "",
        expires_at="" if access.expires is None else access.expires.isoformat(),
        username=access.username or "",
        roles=list(access.role_names or ()),
        project_id=access.project_id,
        project_name=access.project_name,
        projects=projects,
    )
