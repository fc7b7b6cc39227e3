"""Rules over the values of one server, for what Nova refuses in any case; pure."""

import re
from collections.abc import Iterator

from ....shapes import JsonMap
from ...contract import PropertyError, rule_of_each
from ..neutron.lacking_rules import LACKING_RULES
from ..neutron.network_rules import NETWORK_RULES, SERVER
from .body import encoded, metadata_field
from .user_data import RAW, least_user_data

# The lengths are those of Nova's schemas (api/validation/parameter_types.py and objects/tag.py there).
_MOST_USER_DATA = 65535
"""Characters of user_data in base64."""
_CERTAINLY_TEXT = 8_000
"""Characters from which user_data is no id of a software config, and may be too long with what is added."""
_METADATA_NAME = re.compile("^[a-zA-Z0-9-_:. ]{1,255}$")
_MOST_METADATA = 255


def server_errors(properties: JsonMap) -> Iterator[PropertyError]:
    """Yield the errors of the lengths and characters of texts.

    :param properties: the known properties; those that are unknown are absent.
    """
    yield from _user_data_errors(properties)
    for name, text in metadata_field(properties.get("metadata")).items():
        path = ("metadata", name)
        if not _METADATA_NAME.search(name):
            rule = "1 to 255 letters, digits, spaces and any of - _ : ."
            yield PropertyError(f"Nova takes no such name of metadata: it may have {rule}", path)
        elif len(text) > _MOST_METADATA:
            limit = f"{len(text)} characters, above Nova's limit of {_MOST_METADATA}"
            yield PropertyError(
                f"the value has {limit}: pass it as user_data, or as the resource's metadata", path
            )
    for index, tag in enumerate(properties.get("tags") or ()):
        if tag and ("," in tag or "/" in tag):
            yield PropertyError("a tag of Nova's may have no comma and no slash", ("tags", index))


def _user_data_errors(properties: JsonMap) -> Iterator[PropertyError]:
    user_data = properties.get("user_data")
    if not user_data or len(user_data) < _CERTAINLY_TEXT:
        return
    text = user_data.encode(errors="replace").decode()
    size = len(encoded(least_user_data(properties.get("user_data_format", RAW), text)))
    if size > _MOST_USER_DATA:
        limit = f"{size} characters in base64, above Nova's limit of {_MOST_USER_DATA}"
        hint = "let it fetch its larger parts from a server or a container"
        yield PropertyError(f"user_data has {limit}: {hint}", ("user_data",))


SERVER_RULES = (rule_of_each(SERVER, server_errors), *NETWORK_RULES, *LACKING_RULES)
