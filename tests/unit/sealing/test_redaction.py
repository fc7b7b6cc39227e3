"""Redaction: a secret is found in each form in which Stoker, or a service that repeats it, writes it."""

import base64
import html
import json
import textwrap
import urllib.parse
from collections.abc import Callable

import pytest
from stoker.resources.mime import mime_message, mime_part
from stoker.resources.openstack.nova.body import encoded
from stoker.sealing.redaction import HEAD, MASK, SecretTexts, redacted

SECRET = 'pa"ss wörd/ü\n+&x'
LONG = "; ".join(map(str, range(100, 160)))
Encode = Callable[[str], str]
FORMS: dict[str, Encode] = {
    "as it is": lambda text: text,
    "JSON": json.dumps,
    "JSON with letters": lambda text: json.dumps(text, ensure_ascii=False),
    "Python": repr,
    "a path": lambda text: urllib.parse.quote(text, safe=""),
    "a query": lambda text: urllib.parse.urlencode({"a": text}),
    "user data": encoded,
    "user data in an address": lambda text: urllib.parse.quote(encoded(text + "??>>"), safe=""),
    "base64 for addresses": lambda text: base64.urlsafe_b64encode(text.encode()).decode(),
    "a message": lambda text: mime_message([mime_part(f"x\n{text}")], "key"),
    "user data of a message": lambda text: encoded(mime_message([mime_part(f"{'y' * 90}{text}")], "k")),
    "a message in JSON": lambda text: json.dumps(mime_message([mime_part(f"{'y' * 90}{text}")], "key")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("before", ["", "1", "22", "333"])
def test_a_secret_is_found_in_each_form_that_is_made_of_it(form: str, before: str) -> None:
    text = f"Value: {FORMS[form](f'{before}{SECRET}and more')}. It is too long"
    assert SecretTexts({SECRET}).is_in(text)
    shown = redacted(text, {SECRET})
    assert MASK in shown
    assert not SecretTexts({SECRET}).is_in(shown)
    assert shown.startswith("Value: ")
    assert shown.endswith("It is too long")


@pytest.mark.parametrize("cut", range(4))
def test_a_run_of_base64_that_was_cut_is_decoded_all_the_same(cut: int) -> None:
    text = f"…{encoded('0123456789 swordfish 0123456789')[cut:-3]}…"
    assert redacted(text, {"swordfish"}) == f"…{MASK}…"


def test_base64_in_lines_is_one_run() -> None:
    lines = "\n".join(textwrap.wrap(encoded(f"{'z' * 50}swordfish{'z' * 200}"), 76))
    assert redacted(f"a\n\n{lines}\n\nb", {"swordfish"}) == f"a\n\n{MASK}\n\nb"


def test_what_holds_no_secret_stays() -> None:
    text = f"Server 8f14e45f-ceea-467f-9575-1b2c3d4e5f60 is bad: {encoded('no harm in this')}\nat /v2.1/x%20y"
    assert redacted(text, {"swordfish"}) == text
    assert not SecretTexts({"swordfish"}).is_in(text)


@pytest.mark.parametrize("encode", [str, encoded, repr])
def test_the_beginning_of_a_long_secret_is_hidden_where_a_message_was_cut(encode: Encode) -> None:
    secret = "".join(f"{number};" for number in range(20_000))
    message = f"Value: {encode(secret)[:990]}"
    texts = SecretTexts({secret})
    assert texts.redacted(message, may_be_cut=True).strip("'") in (f"Value: {MASK}", f"Value: '{MASK}")
    # A value that only begins alike is not changed.
    assert texts.redacted(f"x {secret[:HEAD]}") == f"x {secret[:HEAD]}"


@pytest.mark.parametrize("secret", [SECRET, "schlüssel", "pass word&x"])
@pytest.mark.parametrize(
    "encode",
    [
        str,
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
        lambda text: repr(text)[1:-1],
        lambda text: urllib.parse.quote(text, safe=""),
        urllib.parse.quote,
        urllib.parse.quote_plus,
        html.escape,
        lambda text: text.replace("\n", "\r\n"),
    ],
)
def test_nothing_of_a_secret_is_left_and_nothing_else_is_taken(secret: str, encode: Encode) -> None:
    assert redacted(f"<{encode(secret)}>", {secret}) == f"<{MASK}>"


def test_of_secrets_that_begin_alike_the_longer_one_is_hidden_as_a_whole() -> None:
    assert redacted("is: key-and-more!", {"key", "key-and-more"}) == f"is: {MASK}!"


@pytest.mark.parametrize(("times", "is_decoded"), [(1, True), (2, True), (3, False)])
def test_an_encoding_within_an_encoding_is_decoded_twice(times: int, is_decoded: bool) -> None:
    text = "0123456789 swordfish 0123456789"
    for _ in range(times):
        text = encoded(text)
    assert SecretTexts({"swordfish"}).is_in(text) is is_decoded


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (LONG[:32], MASK),
        (LONG[:31], LONG[:31]),
        (f"{LONG[:40]}… and {LONG[:33]}…", f"{MASK}… and {MASK}…"),
        (f"{LONG}, {LONG[:35]}", f"{MASK}, {MASK}"),
    ],
)
def test_each_beginning_of_a_secret_counts_from_thirty_two_characters_on(text: str, shown: str) -> None:
    assert SecretTexts({LONG, "other"}).redacted(text, may_be_cut=True) == shown


def test_a_secret_of_three_letters_is_cut_out() -> None:
    assert redacted("a pin of abc", {"abc"}) == f"a pin of {MASK}"


def test_a_short_secret_shows_nowhere_as_a_gap_but_is_masked_as_a_whole() -> None:
    assert redacted("up", {"up"}) == MASK
    assert redacted("setup", {"up"}) == "setup"
    assert SecretTexts({"up"}).is_in("setup")
