"""Which version this is."""

import importlib.metadata


def _installed() -> str:
    try:
        return importlib.metadata.version("stoker")
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


VERSION = _installed()
