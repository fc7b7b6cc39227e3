"""The versions of the API."""

from ..reply import Reply, link
from ..request import HttpRequest


def api_versions(request: HttpRequest) -> Reply:
    """Answer GET /."""
    version = {"id": "v1.0", "status": "CURRENT", "links": [link(f"{request.base_url}/v1/")]}
    return Reply({"versions": [version]}, 300)
