"""YAML documents that were parsed before: to parse a template takes longer than to compile it."""

import hashlib
import pickle
import threading
from dataclasses import dataclass

from cachetools import LRUCache

from ..shapes import Json

MOST_BYTES = 4 * 1024 * 1024
"""Bytes that all documents of one store may take."""
_OVERHEAD = 600
"""Bytes that each document takes beside its own, with its key and its place in the order."""
_LARGEST = 256 * 1024
"""Bytes above which a document is not kept: a few large ones would drive out all others."""


@dataclass(frozen=True)
class ParsedDocument:
    """A document, as bytes: each reader gets a tree of its own, and can change no other's.

    :ivar events: the events that parsing it took.
    """

    events: int
    pickled: bytes

    @property
    def tree(self) -> Json:
        """Return the document."""
        return pickle.loads(self.pickled)  # This process has pickled it.

    @property
    def size(self) -> int:
        """Return the bytes that it takes in a store."""
        return len(self.pickled) + _OVERHEAD


class ParsedDocuments:
    """The YAML documents that were parsed last.  Thread-safe."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._documents: LRUCache[bytes, ParsedDocument] = LRUCache(
            most, getsizeof=lambda document: document.size
        )
        self._lock = threading.Lock()

    def of(self, project_id: str) -> "ProjectDocuments":
        """Return the documents that a project has sent.

        Those of others are not found.  Else the time of a request would tell whether another project has
        sent the same text, with the same password in it.
        """
        return ProjectDocuments(self, project_id)

    def find(self, project_id: str, text: str) -> ParsedDocument | None:
        """Return the document of a text; None: it is to be parsed."""
        with self._lock:
            return self._documents.get(_key(project_id, text))

    def keep(self, project_id: str, text: str, tree: Json, events: int) -> None:
        """Keep the document of a text."""
        if len(text) > _LARGEST:
            return
        document = ParsedDocument(events, pickle.dumps(tree))
        if document.size <= min(_LARGEST, self._documents.maxsize):
            with self._lock:
                self._documents[_key(project_id, text)] = document


@dataclass(frozen=True)
class ProjectDocuments:
    """The part of `ParsedDocuments` that a project has sent."""

    documents: ParsedDocuments
    project_id: str

    def find(self, text: str) -> ParsedDocument | None:
        """Return the document of a text; None: it is to be parsed."""
        return self.documents.find(self.project_id, text)

    def keep(self, text: str, tree: Json, events: int) -> None:
        """Keep the document of a text."""
        self.documents.keep(self.project_id, text, tree, events)


def _key(project_id: str, text: str) -> bytes:
    digest = hashlib.sha256(project_id.encode())
    return digest.digest() + hashlib.sha256(text.encode(errors="surrogatepass")).digest()
