"""Secrets in texts: they are found, and taken out, in each form in which Stoker sends them.

A service that refuses a request repeats it, as it was sent: in JSON, in an address, in base64 within a
message of MIME.  So all of these are searched for a secret.  A run of base64 is decoded, wherever it begins,
and what it holds decides.

The work grows with the length of the text and the number of secrets; an encoding within an encoding is
decoded `DEPTH` times at most.
"""

import base64
import html
import json
import os.path
import re
import urllib.parse
from collections.abc import Callable, Collection, Iterator

MASK = "******"
SHORTEST_REDACTED = 3
"""Characters: where shorter secrets were cut out of a text, the gaps would show them."""
DEPTH = 2
"""User data are base64 of a message, of which a part may be base64."""
HEAD = 32
"""Characters: so much of a secret at least is recognised where the rest of it was cut off."""
_BASE64 = "A-Za-z0-9+/_-"
_RUN = re.compile(
    # Lines of MIME are long; the words of a sentence with line breaks are no run.
    rf"[{_BASE64}]{{4,}}+(?:(?:%[0-9A-Fa-f]{{2}}|(?<=[{_BASE64}]{{60}})(?:\r?\n|(?:\\r)?\\n))[{_BASE64}]*+)*+={{0,2}}"
)
_BREAK = re.compile(r"\\r|\\n")
_NO_BASE64 = re.compile("[^A-Za-z0-9+/]")
_STANDARD = str.maketrans("-_", "+/")
_ENCODINGS: tuple[Callable[[str], str], ...] = (
    lambda text: text,
    lambda text: json.dumps(text)[1:-1],
    lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
    lambda text: repr(text)[1:-1],
    lambda text: urllib.parse.quote(text, safe=""),
    lambda text: urllib.parse.quote(text),
    lambda text: urllib.parse.quote_plus(text),
    lambda text: html.escape(text),
    lambda text: text.replace("\n", "\r\n"),
)
"""The forms of a text within a larger one; services write values as Python and HTML do, too."""


class SecretTexts:
    """Secrets that may be in texts; immutable.

    :param texts: the secrets as they are.
    """

    def __init__(self, texts: Collection[str]) -> None:
        self._texts = frozenset(texts)
        self._forms = sorted(
            {form for text in self._texts if len(text) >= SHORTEST_REDACTED for form in _forms(text)},
            key=len,
            reverse=True,
        )

    def has(self, text: str) -> bool:
        """Return whether a text is a secret."""
        return text in self._texts

    def is_in(self, text: str) -> bool:
        """Return whether a secret is in a text, in any form; short ones count only as they are."""
        if any(secret in text for secret in self._texts):
            return True
        return bool(self._forms) and any(self._is_plainly_in(view) for view in _views(text))

    def redacted(self, text: str, *, may_be_cut: bool = False) -> str:
        """Return a text without the secrets that are in it, or are it.

        :param may_be_cut: whether the beginning of a secret counts as it, as in a message that was cut off.
        """
        if text in self._texts:
            return MASK
        for form in self._forms:
            text = text.replace(form, MASK)
            if may_be_cut and len(form) > HEAD:
                text = _without_beginning(text, form)
        if not self._forms:
            return text
        return _RUN.sub(lambda run: MASK if self._is_encoded_in(run[0], may_be_cut) else run[0], text)

    def _is_plainly_in(self, text: str, *, may_be_cut: bool = False) -> bool:
        return any(form[: HEAD if may_be_cut else None] in text for form in self._forms)

    def _is_encoded_in(self, run: str, may_be_cut: bool) -> bool:
        return any(self._is_plainly_in(view, may_be_cut=may_be_cut) for view in _decoded(run, DEPTH))


def redacted(text: str, secrets: Collection[str]) -> str:
    """Return a text without secrets that are in it, in any form, or are it."""
    return SecretTexts(secrets).redacted(text)


def _forms(secret: str) -> set[str]:
    if secret.isascii() and secret.isalnum():
        return {secret}
    return {encode(secret) for encode in _ENCODINGS}


def _without_beginning(text: str, form: str) -> str:
    """Return a text without the beginnings of a form, each as far as it goes."""
    start = 0
    while (start := text.find(form[:HEAD], start)) >= 0:
        length = len(os.path.commonprefix([text[start : start + len(form)], form]))
        text = text[:start] + MASK + text[start + length :]
        start += len(MASK)
    return text


def _views(text: str) -> Iterator[str]:
    """Yield a text, and the texts of which it holds the base64."""
    yield text
    for run in _RUN.finditer(text):
        yield from _decoded(run[0], DEPTH)


def _decoded(run: str, depth: int) -> Iterator[str]:
    """Yield the texts of which a run of base64 may be a part, and those of which these hold the base64.

    Where the run was cut off at its beginning, it may begin with any of the four characters of a group.
    """
    characters = _NO_BASE64.sub("", _BREAK.sub("", urllib.parse.unquote(run)).translate(_STANDARD))
    for start in range(4):
        length = (len(characters) - start) // 4 * 4
        text = base64.b64decode(characters[start : start + length]).decode(errors="replace")
        yield text
        if depth > 1:
            for inner in _RUN.finditer(text):
                yield from _decoded(inner[0], depth - 1)
