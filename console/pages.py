"""Serves the files of the console, and logs its users in."""

import hashlib
import json
import logging
import pathlib
from collections.abc import Mapping
from dataclasses import dataclass, field

import falcon

from ..api.bodies import read_body
from ..api.errors import Fault, not_found
from ..api.etags import has_latest
from ..api.pages import FILE, PATH
from ..api.schemas import validated
from ..keystone.login import KeystoneLogin, Login, LoginRefused, Project
from ..shapes import Json

LOG = logging.getLogger(__name__)
FOLDER = pathlib.Path(__file__).parent / "page"
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; object-src 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}
"""Headers of each answer: browsers run scripts from here only, and show the pages in no other frame."""
MOST_BODY = 65536
"""Bytes of a login: a token has some hundreds, or with PKI some thousands."""
_TEXT = {"type": ["string", "null"], "maxLength": 255}
LOGIN: Json = {
    "type": "object",
    "properties": {
        "username": _TEXT,
        "password": {"type": "string", "maxLength": 4096},
        "user_domain": _TEXT,
        "token": {"type": "string", "minLength": 1, "maxLength": 32768},
        "project_id": _TEXT,
        "project": _TEXT,
        "project_domain": _TEXT,
    },
    "oneOf": [{"required": ["username", "password"]}, {"required": ["token"]}],
    "additionalProperties": False,
}


@dataclass(frozen=True)
class Console:
    """The console's settings.

    :ivar version: the version of Stoker.
    :ivar login: the login of users; None: the API does not authenticate them.
    :ivar project: the project that is offered where users are not authenticated.
    :ivar horizon: the address of Horizon, to whose pages the console links; None: no links.
    """

    version: str
    login: KeystoneLogin | None = None
    project: str = "demo"
    horizon: str | None = None

    def add_to(self, app: falcon.App[falcon.Request, falcon.Response]) -> None:
        """Add the console's routes."""
        pages = _Pages(_read_files())
        app.add_route(PATH, pages)
        app.add_route(FILE, pages)
        app.add_route(f"{PATH}/settings", _Settings(self))
        if self.login is not None:
            app.add_route(f"{PATH}/login", _Login(self.login))


@dataclass(frozen=True)
class _File:
    data: bytes
    kind: str
    etag: str = field(default="")


def _read_files() -> Mapping[str, _File]:
    files = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in KINDS:
            data = path.read_bytes()
            files[path.name] = _File(data, KINDS[path.suffix], f'"{hashlib.sha256(data).hexdigest()[:32]}"')
    return files


class _Pages:
    """The files, from memory; a browser asks each time whether its copy is still the latest."""

    def __init__(self, files: Mapping[str, _File]) -> None:
        self._files = files

    def on_get(self, req: falcon.Request, resp: falcon.Response, name: str = "") -> None:
        resp.set_headers(HEADERS)
        if not name and not str(req.env.get("PATH_INFO", "")).endswith("/"):
            # The page's addresses are relative to it, for a proxy may serve the API below a path of its own.
            resp.status = 302
            resp.location = f"{req.prefix}{PATH}/"
            return
        file = self._files.get(name or "index.html")
        if file is None:
            raise not_found("path", req.path)
        resp.set_headers({"Cache-Control": "no-cache", "ETag": file.etag})
        if has_latest(req.get_header("If-None-Match") or "", file.etag):
            resp.status = 304
            return
        resp.data = file.data
        resp.content_type = file.kind

    on_head = on_get


class _Settings:
    """Says how users log in."""

    def __init__(self, console: Console) -> None:
        settings = {
            "auth": "none" if console.login is None else "keystone",
            "version": console.version,
            "project": console.project,
            "horizon": console.horizon,
        }
        self._body = json.dumps(settings).encode()

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.set_headers({**HEADERS, "Cache-Control": "no-store"})
        resp.data = self._body
        resp.content_type = "application/json"

    on_head = on_get


class _Login:
    """Exchanges a password, or a token, for a token of a project."""

    def __init__(self, keystone: KeystoneLogin) -> None:
        self._keystone = keystone

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.set_headers({**HEADERS, "Cache-Control": "no-store"})
        body = validated(read_body(req, MOST_BODY), LOGIN)
        try:
            login = self._login(body)
        except LoginRefused as error:
            LOG.info("A login at the console is refused: %s", error)
            raise Fault(401, "Unauthorized", f"Login refused: {error}") from error
        resp.data = json.dumps(_login_view(login)).encode("ascii")
        resp.content_type = "application/json"

    def _login(self, body: Mapping[str, str | None]) -> Login:
        project = Project(body.get("project_id"), body.get("project"), body.get("project_domain"))
        if token := body.get("token"):
            return self._keystone.by_token(token, project)
        username = body.get("username") or ""
        password = body.get("password") or ""
        return self._keystone.by_password(username, password, body.get("user_domain"), project)


def _login_view(login: Login) -> dict[str, Json]:
    project = {"id": login.project_id, "name": login.project_name}
    return {
        "token": login.token,
        "expires_at": login.expires_at,
        "user": login.username,
        "roles": list(login.roles),
        "project": project if login.project_id else None,
        "projects": [{"id": key, "name": name} for key, name in login.projects],
    }
