"""``make attack``: tries every hole that was ever found, on an installation, and prints a table.

Usage:
    python -m attack                             on its own installation, with Keystone
    python -m attack http://host:8004            without Keystone
    options: --cloud A --victim B   users of two projects, by their names in clouds.yaml
             --cases NAME …         some attacks;  --list prints all

It creates a stack in each of the two projects, and deletes both at the end.  The exit code is 1 if an answer
was not the one that must come.
"""

import argparse
import contextlib
import os
import pathlib
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence

import openstack
import requests
from attack import bombs, guests, nested, protocol, roles, software, tenants
from attack.callers import make_callers
from attack.cases import CASES, Case
from attack.target import SKIPPED, Party, Skip, Target, Unexpected
from client.serving import Service
from harness.keystone import Keystone

MODULES = (tenants, roles, nested, software, guests, bombs, protocol)
"""The modules whose import fills the table."""
LINE = "{:<9} {:<34} {:<8} {}"


def party_of(cloud: str) -> Party:
    """Return the user of an entry of clouds.yaml."""
    connection = openstack.connect(cloud=cloud)
    return Party(connection.current_project_id, lambda: str(connection.session.get_token()))


@contextlib.contextmanager
def own_installation(run: str) -> Iterator[Target]:
    """Start Stoker and a Keystone with users of all roles, until the end of the block."""
    with Keystone() as keystone, tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "attack.conf")
        config.write_text(keystone.options())
        service = Service(pathlib.Path(folder), conductors=1, config=config)
        try:
            callers = make_callers(keystone, run)
            yield Target(service.url, callers.attacker, callers.victim, run, callers=callers)
        finally:
            service.stop()


def tried(case: Case, target: Target) -> str:
    """Try an attack, and return what was wrong; empty: nothing was."""
    try:
        case.attempt(target)
    except Skip as reason:
        return f"{SKIPPED}: {reason}"
    except Unexpected as error:
        return str(error)
    except (requests.RequestException, KeyError, ValueError) as error:
        return f"no answer as expected: {type(error).__name__}: {error}"
    return ""


def attack(target: Target, names: Sequence[str]) -> int:
    """Try attacks, print a line for each, and return how many have succeeded."""
    succeeded = 0
    try:
        target.set_up()
        for case in [CASES[name] for name in names]:
            began = time.monotonic()
            problem = tried(case, target)
            is_skipped = problem.startswith(SKIPPED)
            result = SKIPPED if is_skipped else "WRONG" if problem else "ok"
            succeeded += bool(problem) and not is_skipped
            print(LINE.format(case.kind, case.name, result, f"{time.monotonic() - began:.1f} s"), flush=True)
            if problem:
                print(
                    f"          sent: {case.sends}\n          must come: {case.expects}\n          {problem}",
                    flush=True,
                )
    except Unexpected as error:
        succeeded += 1
        print(f"the stacks of the two projects: {error}", flush=True)
    finally:
        left = target.clean()
    if left:
        print(f"left: {', '.join(left)}", flush=True)
    return succeeded + len(left)


def main() -> int:
    """Run as the arguments say; return 1 if an attack has succeeded."""
    parser = argparse.ArgumentParser(prog="make attack", description=__doc__.partition("\n")[0])
    parser.add_argument("url", nargs="?", help="root of the API; default: an installation of its own")
    parser.add_argument("--cloud", help="the attacker, in clouds.yaml; default: OS_CLOUD")
    parser.add_argument("--victim", help="a user of another project, in clouds.yaml")
    parser.add_argument("--list", action="store_true", help="print the table of attacks only")
    parser.add_argument("--cases", nargs="+", default=[], help="names of attacks; default: all")
    options = parser.parse_args()
    if options.list:
        for case in CASES.values():
            print(f"{case.kind}: {case.name}\n    {case.sends}\n    -> {case.expects}")
        return 0
    attacker = options.cloud or (os.environ.get("OS_CLOUD") if options.victim else None)
    if (attacker is None) != (options.victim is None):
        parser.error("two users are needed: --cloud and --victim")
    if unknown := set(options.cases) - CASES.keys():
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    run = uuid.uuid4().hex[:8]
    names = options.cases or list(CASES)
    if options.url is None:
        with own_installation(run) as target:
            succeeded = attack(target, names)
    else:
        parties = (
            [party_of(attacker), party_of(options.victim)]
            if attacker and options.victim
            else [Party(f"attack-a-{run}"), Party(f"attack-b-{run}")]
        )
        root = options.url.rstrip("/").removesuffix("/v1")
        succeeded = attack(Target(root, *parties, run=run), names)
    print(f"{succeeded} of {len(options.cases or CASES)} attacks were not answered as they must be")
    return 1 if succeeded else 0


if __name__ == "__main__":
    sys.exit(main())
