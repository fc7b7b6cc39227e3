"""Messages of MIME, such as cloud-init takes apart."""

import email
import email.message
import email.mime.multipart
import email.mime.text
from collections.abc import Iterable


def mime_part(text: str, subtype: str = "", filename: str = "") -> email.message.Message:
    """Return a part of a message.

    :param subtype: subtype of text; "": plain.
    """
    charset = "us-ascii" if text.isascii() else "utf-8"
    part = email.mime.text.MIMEText(text, subtype or "plain", charset)
    if filename:
        part.add_header("Content-Disposition", "attachment", filename=filename)
    return part


def parts_of(message: str) -> list[email.message.Message]:
    """Return the parts of a message, encoded as `mime_part` does; none: it is no message of several parts."""
    parsed = email.message_from_string(message)
    if not parsed.is_multipart():
        return []
    return [_copy(part) for part in parsed.get_payload() if isinstance(part, email.message.Message)]


def mime_message(parts: Iterable[email.message.Message], key: str) -> str:
    """Return a message; the same for the same parts and key."""
    return email.mime.multipart.MIMEMultipart(boundary=f"==={key}===", _subparts=list(parts)).as_string()


def _copy(part: email.message.Message) -> email.message.Message:
    if part.is_multipart():
        return part
    raw = part.get_payload(decode=True)
    text = raw.decode(part.get_content_charset("utf-8"), "replace") if isinstance(raw, bytes) else ""
    return mime_part(text, part.get_content_subtype(), part.get_filename() or "")
