"""Carry this machine's settings of registries into another root folder.

    registries.py ROOT HOME...

These are the indexes, mirrors, proxies and certificates of pip, npm and apt, and nothing else.  Variables
become lines of configuration files, because the other machine has none of the environment.  ROOT is a
minimal Debian.  The folders HOME below it get the settings of npm, which has no place for those of all users.

Prints the folders that the settings name, such as mirrors on this machine's disk, for the caller to mount at
the same paths.
"""

import ast
import configparser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping

BUNDLE = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
"""All certificates that a Debian trusts, after `update-ca-certificates`."""
LOCAL_CERTIFICATES = "usr/local/share/ca-certificates"
BUNDLE_VARIABLES = (
    "SSL_CERT_FILE",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
)
PIP_KEYS = (
    *("index-url", "extra-index-url", "find-links", "no-index", "constraint"),
    *("cert", "client-cert", "trusted-host", "proxy", "timeout", "default-timeout", "retries"),
)
NPM_KEYS = (
    *("registry", "replace-registry-host", "omit-lockfile-registry-resolved"),
    *("cafile", "ca", "cert", "key", "strict-ssl", "proxy", "https-proxy", "noproxy"),
    *("fetch-retries", "fetch-timeout", "fetch-retry-mintimeout", "fetch-retry-maxtimeout"),
)
PEM = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
APT_FILES = ("auth.conf", "auth.conf.d", "keyrings", "trusted.gpg.d")


def pip_settings(listed: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return what pip needs for registries, by key.

    :param listed: the output of `pip config list`: a line `SECTION.KEY='VALUE'` for each value. The section
        of variables is `:env:`; they have the highest rank.
    :param environment: for the proxy, which is no setting of pip's own.
    """
    by_section: dict[str, dict[str, str]] = {"global": {}, "install": {}, ":env:": {}}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, key = name.rpartition(".")
        if key in PIP_KEYS and section in by_section:
            by_section[section][key] = str(ast.literal_eval(value))
    settings = by_section["global"] | by_section["install"] | by_section[":env:"]
    if proxy := proxy_of(environment):
        settings.setdefault("proxy", proxy)
    return settings


def npm_settings(texts: Iterable[str], environment: Mapping[str, str]) -> dict[str, str]:
    """Return what npm needs for registries, by key.

    :param texts: its configuration files, those of the highest rank last.
    """
    settings: dict[str, str] = {}
    for text in texts:
        for line in text.splitlines():
            key, separator, value = line.partition("=")
            if separator and not line.lstrip().startswith(("#", ";")):
                settings[key.strip()] = os.path.expandvars(value.strip()).strip("\"'")
    for name, value in environment.items():
        if name.lower().startswith("npm_config_"):
            settings[name.lower().removeprefix("npm_config_").replace("_", "-")] = value
    if proxy := proxy_of(environment):
        settings.setdefault("https-proxy", proxy)
    if environment.get("NODE_EXTRA_CA_CERTS"):
        settings.setdefault("cafile", str(BUNDLE))
    return {key: value for key, value in settings.items() if is_registry_key(key)}


def is_registry_key(key: str) -> bool:
    """Return whether a key of npm says where packages are, or how to get in there."""
    return key in NPM_KEYS or key.startswith("//") or (key.startswith("@") and key.endswith(":registry"))


def proxy_of(environment: Mapping[str, str]) -> str | None:
    """Return the proxy for requests by https, if there is one."""
    names = ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
    return next((environment[name] for name in names if environment.get(name)), None)


def certificates(texts: Iterable[str], trusted: str) -> list[str]:
    """Return the certificates of some bundles that another bundle lacks, each once."""
    present = {"".join(block.split()) for block in PEM.findall(trusted)}
    missing = {"".join(block.split()): block for text in texts for block in PEM.findall(text)}
    return [block for squeezed, block in missing.items() if squeezed not in present]


def paths(values: Iterable[str]) -> Iterator[pathlib.Path]:
    """Return the absolute paths that settings name, by themselves or as URLs."""
    for value in values:
        for word in value.split():
            url = urllib.parse.urlsplit(word)
            if word.startswith("/") and not word.startswith("//"):
                yield pathlib.Path(word)
            elif url.scheme == "file":
                yield pathlib.Path(urllib.parse.unquote(url.path))


def mirrors(named: Iterable[pathlib.Path]) -> set[pathlib.Path]:
    """Return the folders to mount for some paths.

    A mirror of PyPI has its index in `simple`, and what that links to beside it.
    """
    folders = {path for path in named if path.is_dir()}
    return {path.parent if path.name == "simple" else path for path in folders}


class Machine:
    """The other machine.

    :param root: its root folder.
    """

    def __init__(self, root: pathlib.Path) -> None:
        self._root = root
        self._named: list[pathlib.Path] = []

    def write_pip(self, settings: Mapping[str, str]) -> None:
        """Write pip's configuration for all users."""
        settings = self._with_bundle(settings, "cert")
        parser = configparser.RawConfigParser()
        parser["global"] = settings
        with (self._root / "etc/pip.conf").open("w") as stream:
            parser.write(stream)

    def write_npm(self, settings: Mapping[str, str], home: pathlib.PurePath) -> None:
        """Write npm's configuration for the user of a home."""
        settings = self._with_bundle(settings, "cafile")
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self._root / home / ".npmrc").write_text(text)

    def _with_bundle(self, settings: Mapping[str, str], key: str) -> dict[str, str]:
        """Return the settings for the other machine, whose one bundle has all that this one trusts."""
        own = {**settings, key: str(BUNDLE)} if key in settings else dict(settings)
        self._named += paths(value for name, value in own.items() if name != key)
        return own

    def write_apt(self) -> None:
        """Copy how apt gets in, and the keys that it trusts, but for Debian's own."""
        for name in APT_FILES:
            source, target = pathlib.Path("/etc/apt", name), self._root / "etc/apt" / name
            if source.is_dir():
                shutil.copytree(
                    source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("debian-archive-*")
                )
            elif source.exists():
                shutil.copy(source, target)
        for file in sorted((self._root / "etc/apt/apt.conf.d").iterdir()):
            self._named += paths(re.findall(r'"(/[^"]+)"', file.read_text()))

    def trust(self, bundles: Iterable[pathlib.Path]) -> None:
        """Lay down the certificates of some bundles for `update-ca-certificates`."""
        texts = [path.read_text(errors="replace") for path in bundles if path.is_file()]
        folder = self._root / LOCAL_CERTIFICATES
        folder.mkdir(parents=True, exist_ok=True)
        trusted = self._root / BUNDLE.relative_to("/")
        for number, block in enumerate(certificates(texts, trusted.read_text())):
            (folder / f"registry-{number}.crt").write_text(f"{block}\n")

    def copy_named(self) -> set[pathlib.Path]:
        """Copy the files that the settings name; return the folders, which are too big for that."""
        for path in self._named:
            target = self._root / path.relative_to("/")
            if path.is_file() and not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
        return mirrors(self._named)


def output_of(*command: str) -> str:
    """Return what a command prints; nothing if it is not installed."""
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def npm_files() -> list[pathlib.Path]:
    """Return the files of npm's configuration, those of the highest rank last."""
    places = [output_of("npm", "config", "get", key).strip() for key in ("globalconfig", "userconfig")]
    return [pathlib.Path(place) for place in places if place]


def main(root: str, *homes: str) -> None:
    """Write all settings, and print the folders to mount."""
    machine = Machine(pathlib.Path(root))
    pip = pip_settings(output_of(sys.executable, "-m", "pip", "config", "list"), os.environ)
    npm = npm_settings((path.read_text() for path in npm_files() if path.is_file()), os.environ)
    machine.write_pip(pip)
    for home in homes:
        machine.write_npm(npm, pathlib.PurePath(home))
    machine.write_apt()
    named = [os.environ.get(name, "") for name in BUNDLE_VARIABLES]
    machine.trust([BUNDLE, *paths([*named, pip.get("cert", ""), npm.get("cafile", "")])])
    for folder in sorted(machine.copy_named()):
        print(folder)


if __name__ == "__main__":
    main(*sys.argv[1:])
