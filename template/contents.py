"""Contents of files, compared without the names of the files: these say only where a client keeps them."""

import hashlib
import re
from collections.abc import Mapping

_WORD = re.compile(r"[^\s\"',{}\[\]]+")
"""A word of a template or an environment that may be the name of a file."""
_DEEPEST = 50
"""Files that name each other in a row: as many as there are levels of nested stacks."""


def same_content(
    first: str, first_files: Mapping[str, str], second: str, second_files: Mapping[str, str]
) -> bool:
    """Return whether two files have equal contents, and so have the files that they name.

    Clients write absolute names into the templates that they send.

    :param first: a name among `first_files`, and `second` one among `second_files`; a missing file equals
        none.
    """
    if first not in first_files or second not in second_files:
        return False
    return _digest(first, first_files, {}, 0) == _digest(second, second_files, {}, 0)


def _digest(name: str, files: Mapping[str, str], digests: dict[str, str], depth: int) -> str:
    """Return the digest of a file's text, with digests in the place of the names of other files.

    Each file is read once.  A file that names itself, on whatever way, keeps a mark in that place.
    """
    if name in digests or depth > _DEEPEST:
        return digests.get(name, "")
    digests[name] = ""

    def replaced(word: re.Match[str]) -> str:
        return _digest(word[0], files, digests, depth + 1) if word[0] in files else word[0]

    text = _WORD.sub(replaced, str(files[name]))
    digests[name] = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return digests[name]
