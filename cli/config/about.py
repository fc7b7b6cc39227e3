"""The programs in a line each, for their help texts."""

from collections.abc import Mapping

PROGRAMS: Mapping[str, str] = {
    "stoker": "runs the API and several conductors in one process, to try it",
    "stoker-api": "serves the Orchestration API",
    "stoker-conductor": "does the work on stacks, which all conductors share",
    "stoker-manage": "is for operators (database, ring, stuck stacks, keys)",
    "stoker-status": "checks before an upgrade whether this release can run",
}
"""The task of each program, beginning with a verb."""
DOCUMENTS: Mapping[str, str] = {
    "doc/day1.md": "planning",
    "doc/install.md": "installing",
    "doc/day2.md": "daily tasks",
    "doc/operation.md": "limits, duties, commands",
    "doc/handbook.md": "what to do when something fails",
}
"""Where to read more, in Stoker's sources."""


def description(program: str) -> str:
    """Return a description of a program, in a sentence."""
    subject = f"{program} {PROGRAMS[program]}" if program in PROGRAMS else program
    return f"{subject}. It is a part of Stoker, an orchestration engine for OpenStack."


def epilog(program: str) -> str:
    """Return the text that names the other programs and the documents."""
    others = "; ".join(f"{name} {purpose}" for name, purpose in PROGRAMS.items() if name != program)
    documents = ", ".join(f"{path} ({subject})" for path, subject in DOCUMENTS.items())
    return f"The other programs: {others}. Documents, in the sources: {documents}."
