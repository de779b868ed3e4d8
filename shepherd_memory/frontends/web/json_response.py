"""Values of the core as JSON responses."""

from typing import Any

import msgspec
from starlette.responses import Response


def json_response(value: Any, status: int = 200) -> Response:
    """Dataclasses become objects, and moments ISO 8601."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")
