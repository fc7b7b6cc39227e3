"""The versions of the API."""

from ..request import HttpRequest, Reply, link


def api_versions(call: HttpRequest) -> Reply:
    """Answer GET /."""
    version = {"id": "v1.0", "status": "CURRENT", "links": [link(f"{call.base_url}/v1/")]}
    return Reply({"versions": [version]}, 300)
