"""The programs and files that a test of the tier `test` may use: those that `make test` installs.

A machine may have more, and a test that used it would be red elsewhere.  So the run has a PATH of its own, a
folder with links to the programs of the packages that `make test` installs, with those of every Debian.
`find_program` and an audit hook in each process of pytest refuse others that are named by their paths, files
of the environments of other commands, fonts, and files of projects that lie beside this one.

On a machine without dpkg the PATH stays as it is, and bindep.txt alone says what is refused.
"""

import contextlib
import functools
import os
import pathlib
import re
import shutil
import sys
import tempfile
import typing
from collections.abc import Collection, Mapping
from importlib import metadata

from harness import debian
from harness.debian import ROOT
from harness.guard import GUARD
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PERMITTED = "STOKER_TESTS_PERMITTED"
"""The variable that names the folder with the programs, in all processes of a run of the tier."""
PROFILES = ("test", "npm")
"""Profiles of bindep.txt that `make test` installs."""
ENVIRONMENTS = tuple(
    f"{ROOT / '.venv' / name}/" for name in ("ansible", "cloud", "guests", "heat", "horizon", "suites")
)
FONTS = ("/usr/share/fonts/", "/usr/local/share/fonts/")
UNSET = ("DEVSTACK_DIR", "STOKER_TEST_CLOUD")
"""Variables that lead to what `make test` does not install."""
HAS_DPKG = (debian.DPKG / "status").exists()
_PATH = re.compile(r"(?<![\w.-])(?:/usr)?(?:/local)?/s?bin/[\w.+-]+")


class MissingServer(Exception):
    """The server is not installed; the text says how to install it."""

    def __init__(self, program: str, package: str) -> None:
        super().__init__(program, package)

    def __str__(self) -> str:
        program, package = self.args
        return f"{program} is not installed: run `make test-deps` (Debian package {package})"


class NotOfThisTier(MissingServer):
    """`make test` does not install it; whether this machine has it makes no difference."""

    def __init__(self, name: str, package: str = "") -> None:
        super().__init__(name, package)

    def __str__(self) -> str:
        name, package = self.args
        full_name = f"{name} (Debian package {package})" if package else name
        return (
            f"`make test` does not install {full_name}, so none of its tests may use it: mark the test full, "
            "or needs(…), or extend the profile test of bindep.txt"
        )


# -- once for a run --------------------------------------------------------------------------------


def restrict(environ: typing.MutableMapping[str, str] = os.environ) -> pathlib.Path:
    """Make the folder of programs, and restrict the run's own process, and so all that it starts, to it.

    :returns: the folder, which the guard removes when the run has ended.
    """
    folder = pathlib.Path(tempfile.mkdtemp(prefix="stoker-permitted-"))
    GUARD.directory(folder)
    programs = folder / "bin"
    programs.mkdir()
    for path in (folder, programs):
        path.chmod(0o755)  # The servers' accounts use them, too.
    if HAS_DPKG:
        for path in _programs():
            (programs / path.name).symlink_to(path)
        environ["PATH"] = str(programs)
    environ[PERMITTED] = str(folder)
    environ["PLAYWRIGHT_BROWSERS_PATH"] = str(folder)  # Those that somebody has installed for it.
    for name in UNSET:
        environ.pop(name, None)
    (folder / "modules").write_text("\n".join(sorted(modules_beyond("test"))))
    return folder


def _programs() -> list[pathlib.Path]:
    """Return the permitted programs, one for each name, in the order of PATH."""
    programs: dict[str, pathlib.Path] = {}
    for folder in map(pathlib.Path, ("/usr/sbin", "/usr/bin")):
        for path in folder.iterdir():
            if is_of_a_package(path) and path.name not in programs:
                programs[path.name] = path
    return list(programs.values())


@functools.cache
def packages() -> frozenset[str]:
    """Return the packages that `make test` installs, with those that every machine has."""
    named, others = debian.packages_of_profiles(PROFILES, (ROOT / "bindep.txt").read_text())
    named |= {*debian.BASE}
    if not HAS_DPKG:
        return frozenset(named)
    installed = debian.installed((debian.DPKG / "status").read_text())
    return frozenset(named | debian.closure(installed, named, without=others))


@functools.cache
def _files() -> frozenset[str]:
    return frozenset(debian.files(packages()))


def is_of_a_package(path: pathlib.Path) -> bool:
    """Return whether a program belongs to one of the packages; of alternatives their choice counts."""
    return not _files().isdisjoint((debian.in_usr(str(path)), debian.in_usr(os.path.realpath(path))))


def modules_beyond(extra: str) -> set[str]:
    """Return the modules of installed distributions that an extra of Stoker does not bring."""
    waiting = [("stoker", extra), ("stoker", "")]
    wanted = {*waiting, ("pip", ""), ("setuptools", "")}
    while waiting:
        name, chosen = waiting.pop()
        with contextlib.suppress(metadata.PackageNotFoundError):
            for requirement in map(Requirement, metadata.requires(name) or ()):
                if requirement.marker is None or requirement.marker.evaluate({"extra": chosen}):
                    needs = {(canonicalize_name(requirement.name), one) for one in ("", *requirement.extras)}
                    waiting += needs - wanted
                    wanted |= needs
    brought = {name for name, _ in wanted}
    return {
        module
        for module, names in metadata.packages_distributions().items()
        if brought.isdisjoint(map(canonicalize_name, names))
    }


# -- in each process -------------------------------------------------------------------------------


def is_restricted() -> bool:
    """Return whether this process belongs to a run of the tier `test`."""
    return PERMITTED in os.environ


def check_package(program: str, package: str) -> None:
    """Check the Debian package of a program that is to be looked up.

    :raises NotOfThisTier: `make test` does not install the package.
    """
    if package not in packages():
        raise NotOfThisTier(program, package)


def watch() -> None:
    """Refuse what this process opens or starts by a path and may not use, from now on."""
    _others()  # Which opens files, while it holds a lock.
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[typing.Any, ...]) -> None:
    if event == "open":
        if isinstance(path := arguments[0], str):
            check_file(path)
    elif event in _COMMANDS:
        program, words, environ = _COMMANDS[event](arguments)
        check_program(program, environ)
        for word in words:
            for path in _PATH.findall(word):
                check_program(path)
    elif event == "import" and arguments[0].partition(".")[0] in _modules_beyond():
        raise NotOfThisTier(f"the Python module {arguments[0]}")


def _words(arguments: typing.Any) -> list[str]:
    several = arguments if isinstance(arguments, list | tuple) else [arguments]
    return [os.fsdecode(word) for word in several if isinstance(word, str | bytes | os.PathLike)]


_COMMANDS: dict[str, typing.Callable[[typing.Any], tuple[str, list[str], Mapping[str, str] | None]]] = {
    "subprocess.Popen": lambda args: (os.fsdecode(args[0]), _words(args[1]), args[3]),
    "os.posix_spawn": lambda args: (os.fsdecode(args[0]), _words(args[1]), args[2]),
    "os.exec": lambda args: (os.fsdecode(args[0]), _words(args[1]), args[2]),
    "os.system": lambda args: ("/bin/sh", _words(args[0]), None),
}


def check_program(program: str, environ: Mapping[str, str] | None = None) -> None:
    """Check a program that is to be started.

    :param environ: its variables; None: those of this process.
    :raises NotOfThisTier: it exists here, and `make test` does not install it.
    """
    path = (os.environ if environ is None else environ).get("PATH", os.defpath)
    full = program if "/" in program else shutil.which(program, path=path)
    if full is None or os.path.dirname(full) == _programs_of_this_run():
        return
    check_file(full)
    if not os.path.exists(full):
        return  # The caller notices it.
    target = os.path.realpath(full)
    check_file(target)
    if HAS_DPKG and not _is_ours(target) and not _is_permitted(full):
        raise NotOfThisTier(full)


def _programs_of_this_run() -> str:
    return os.path.join(os.environ.get(PERMITTED, ""), "bin")


@functools.cache
def _is_permitted(path: str) -> bool:
    return is_of_a_package(pathlib.Path(path))


def _is_ours(path: str) -> bool:
    """Return whether a test has made a program, or the project, or it is the Python that runs."""
    ours = (ROOT, pathlib.Path(sys.prefix), pathlib.Path(tempfile.gettempdir()))
    folders = tuple(f"{folder.resolve()}/" for folder in ours)
    return path.startswith(folders) or path == os.path.realpath(sys.executable)


def check_file(path: str) -> None:
    """Check a file that is to be read.

    :raises NotOfThisTier: it belongs to what `make test` does not install, or to another project.
    """
    full = path if path.startswith("/") else os.path.abspath(path)
    if full.startswith(_refused()) or is_of_a_neighbour(full, _root(), _others()):
        raise NotOfThisTier(full)


@functools.cache
def _modules_beyond() -> frozenset[str]:
    listed = pathlib.Path(os.environ.get(PERMITTED, "/nowhere"), "modules")
    return frozenset(listed.read_text().split()) if listed.exists() else frozenset()


@functools.cache
def _refused() -> tuple[str, ...]:
    return (*ENVIRONMENTS, *FONTS)


@functools.cache
def _root() -> str:
    return str(ROOT.resolve())


@functools.cache
def _others() -> tuple[str, ...]:
    """Return the folders of temporary files, and of the Python that runs."""
    folders = (tempfile.gettempdir(), sys.base_prefix, sys.base_exec_prefix)
    return tuple(str(pathlib.Path(folder).resolve()) for folder in folders)


def is_of_a_neighbour(path: str, root: str, others: Collection[str]) -> bool:
    """Return whether a file is in another project beside this one.

    :param root: the folder of this project.
    :param others: folders that may be beside it, or hold it, and are no projects.
    """
    parent, _, name = root.rpartition("/")
    if parent in ("", *others) or not path.startswith(f"{parent}/") or path.startswith(f"{root}/"):
        return False
    if any(path.startswith(f"{other}/") and not parent.startswith(f"{other}/") for other in others):
        return False
    other = path[len(parent) + 1 :].partition("/")[0]
    return other != name and not other.startswith(".")  # The settings of an account are hidden, and pyenv.
