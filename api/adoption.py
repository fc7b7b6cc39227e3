"""What POST /stacks is given to adopt: the document that abandon and export give."""

import json
import typing
from collections.abc import Mapping

from ..planning.requests import EXISTING, AdoptedResource
from ..template.errors import TemplateError
from ..template.load import load_document
from .body import check_depth, check_texts
from .errors import bad_request
from .request import validated
from .schemas import ADOPTED

Json = typing.Any


def adoption(body: Mapping[str, Json]) -> tuple[dict[str, Json], dict[str, AdoptedResource]]:
    """The body of a creation with the document's goal in it, and the things to be taken over.

    As in Heat the template is the document's; environment, parameters and files are those of the document
    with the request's on top.

    :raises Fault: 400, the document is of no use.
    """
    document = _document(body["adopt_stack_data"])
    files = {**(document.get("files") or {}), **(body.get("files") or {})}
    files[EXISTING] = json.dumps(document.get("environment") or {})
    goal = {
        **body,
        "template": document["template"],
        "files": files,
        "environment_files": [EXISTING, *(body.get("environment_files") or ())],
    }
    things = document.get("resources") or {}
    return goal, {name: AdoptedResource.of(entry or {}) for name, entry in things.items()}


def _document(given: Json) -> Mapping[str, Json]:
    try:
        document = load_document(given, "adopt_stack_data") if isinstance(given, str) else given
    except TemplateError as error:
        raise bad_request(f"Invalid adopt data: {error}") from error
    check_depth(document)
    check_texts({"adopt_stack_data": document})
    checked: Mapping[str, Json] = validated(document, ADOPTED, "Invalid adopt data: ")
    return checked
