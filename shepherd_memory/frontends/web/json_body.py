"""JSON bodies: of a request as the type that a handler expects, and of a response."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from shepherd_memory.frontends.web.http_errors import HttpError
from shepherd_memory.text.groups import NamedByMain


def decoded(kind: Any, raw: bytes) -> Any:
    """What a JSON body holds, as `kind`; refused if it is something else."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise misfit("body", error) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise HttpError(400, f"the body is not JSON: {error}") from None
    except RecursionError:
        raise HttpError(400, "the body is not JSON: too deep") from None


def misfit(where: str, error: msgspec.ValidationError) -> HttpError:
    """The refusal of what does not have the fields, or not the types, that were asked for."""
    return HttpError(400, f"the {where} does not fit: {error}".replace(" - at `$.", " at `"))


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Dataclasses become objects, and moments ISO 8601."""
    return Response(
        msgspec.json.encode(value, enc_hook=_plain), status, headers, media_type="application/json"
    )


def _plain(value: object) -> str:
    """A group that `main` names is a kind of text that only we know."""
    if isinstance(value, NamedByMain):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no form in JSON")
