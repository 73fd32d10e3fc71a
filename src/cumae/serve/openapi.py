"""The description of all routes in the form of OpenAPI 3.1, written by hand."""

from __future__ import annotations

import json
from typing import Any

import cumae
from cumae.remembering import remembered

Plain = dict[str, Any]

WIRE_FORMAT = 1  # number of the server's own routes and fields (docs/stability.md)
ERROR = {
    "type": "object",
    "required": ["error", "code"],
    "properties": {"error": {"type": "string"}, "code": {"type": "string"}},
}
REASONS = {
    400: "The request is wrong; nothing was spent.",
    401: "No valid key.",
    403: "The key is not for this, or what it or the oracle may give is used up.",
    404: "There is nothing at this address.",
    405: "The address does not have this method.",
    408: "The body did not come in time.",
    409: "The id was used for another request.",
    413: "More than this server takes.",
    415: "A form of content that is not read.",
    429: "Too many requests; ask again after the seconds of Retry-After.",
    500: "An error inside the server.",
    503: "The model cannot answer now.",
}
ASKING = (400, 401, 403, 404, 405, 408, 409, 413, 415, 429, 500, 503)
LOOKING = (400, 401, 403, 404, 405, 500)
OPEN = (400, 405, 500)
IDS = {
    "type": "array",
    "items": {
        "anyOf": [
            {"type": "string", "minLength": 1, "maxLength": 256},
            {"type": "integer", "minimum": -(2**63) + 1, "maximum": 2**63 - 1},
        ]
    },
}
CELL = {"type": ["number", "string", "boolean", "null"]}
ROWS = {
    "type": "array",
    "minItems": 1,
    "items": {"anyOf": [{"type": "array", "items": CELL}, {"type": "object"}, CELL]},
}
TENSOR = {
    "type": "object",
    "required": ["name", "shape", "datatype"],
    "properties": {
        "name": {"type": "string"},
        "shape": {"type": "array", "items": {"type": "integer", "minimum": 0}},
        "datatype": {"type": "string"},
        "parameters": {"type": "object"},
        "data": {"type": "array"},
    },
}
PREDICTIONS = {
    "type": "object",
    "required": ["predictions"],
    "properties": {"predictions": {"type": "array"}},
}
ANYTHING: Plain = {"type": "object"}
READY = {"type": "object", "required": ["ready"], "properties": {"ready": {"type": "boolean"}}}


def _json(schema: Plain) -> Plain:
    return {"application/json": {"schema": schema}}


def _operation(
    summary: str, good: Plain, failures: tuple[int, ...], body: Plain | None = None, *, key: bool
) -> Plain:
    """Return one operation.

    Parameters
    ----------
    summary : str
        What it does.
    good : dict
        The content of a good reply.
    failures : tuple of int
        The statuses of others.
    body : dict, or None
        The content of a request.
    key : bool
        Whether a key may be needed.
    """
    replies: Plain = {"200": {"description": "The reply.", "content": good}}
    for status in failures:
        replies[str(status)] = {"description": REASONS[status], "content": _json(ERROR)}
    found: Plain = {"summary": summary, "responses": replies}
    if body is not None:
        found["requestBody"] = {"required": True, "content": body}
    if key:
        found["security"] = [{"key": []}, {}]
    return found


INFER = {
    "type": "object",
    "required": ["inputs"],
    "properties": {
        "id": {"type": "string", "maxLength": 256},
        "inputs": {"type": "array", "minItems": 1, "items": TENSOR},
        "outputs": {"type": "array"},
        "parameters": {"type": "object"},
    },
}
INFERRED = {
    "type": "object",
    "required": ["model_name", "outputs"],
    "properties": {"outputs": {"type": "array", "minItems": 1}},
}
INSTANCES = {
    "type": "object",
    "required": ["instances"],
    "properties": {"instances": ROWS, "query_ids": IDS, "user_ids": IDS},
}
INVOKED = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("dataframe_split", "inputs", "params"), ANYTHING),
        **dict.fromkeys(("dataframe_records", "instances"), ROWS),
    },
}
LABELS = {
    "type": "object",
    "required": ["labels"],
    "properties": {
        "labels": {"type": "array", "minItems": 1},
        "query_ids": IDS,
        "instances": ROWS,
        "user_ids": IDS,
    },
}


def _asking() -> Plain:
    def post(summary: str, good: Plain, body: Plain) -> Plain:
        return {"post": _operation(summary, good, ASKING, body, key=True)}

    octets = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
    infer = post("Ask, by the Open Inference Protocol.", _json(INFERRED) | octets, _json(INFER))
    bodies = _json(INVOKED) | {"text/csv": {"schema": {"type": "string"}}}
    invoke = post("Ask, by MLflow's protocol.", _json(PREDICTIONS), bodies)
    summary = "Ask, by KServe's first protocol."
    labels = "Tell labels of earlier queries, or give new rows with labels."
    return {
        "/v2/models/{name}/infer": infer,
        "/v2/models/{name}/versions/{version}/infer": infer,
        "/v1/models/{name}:predict": post(summary, _json(PREDICTIONS), _json(INSTANCES)),
        "/invocations": invoke,
        "/models/{name}/invocations": invoke,
        "/models/{name}/labels": post(labels, _json(ANYTHING), _json(LABELS)),
    }


def _looking() -> Plain:
    text = {"text/plain": {"schema": {"type": "string"}}}
    any_json, ready = _json(ANYTHING), (*LOOKING, 503)

    def get(summary: str, good: Plain, failures: tuple[int, ...], *, key: bool = True) -> Plain:
        return {"get": _operation(summary, good, failures, key=key)}

    one = "/v2/models/{name}"
    metadata = get("The inputs and the output of a model.", any_json, LOOKING)
    model_ready = get("Whether a model can answer.", _json(READY), ready)
    index = _operation("The models.", _json({"type": "array"}), (400, 401, 403, 405, 500), key=True)
    nothing = get("No reply could be made; reported like other failures.", any_json, LOOKING)
    return {
        "/": get("Whether there is a server.", any_json, OPEN, key=False),
        "/ping": get("Whether all models can answer.", _json(READY), (*OPEN, 503), key=False),
        "/version": get("The version.", text, OPEN, key=False),
        "/openapi.json": get("This description.", any_json, OPEN, key=False),
        "/v2/health/live": get("Whether the process answers.", any_json, OPEN, key=False),
        "/v2/health/ready": get(
            "Whether all models can answer.", _json(READY), (*OPEN, 503), key=False
        ),
        "/v2": get("The server.", any_json, OPEN, key=False),
        "/v2/repository/index": {"post": index},
        one: metadata,
        f"{one}/versions/{{version}}": metadata,
        f"{one}/ready": model_ready,
        f"{one}/versions/{{version}}/ready": model_ready,
        f"{one}/config": nothing,
        f"{one}/stats": nothing,
        "/v1/models/{name}": model_ready,
        "/models": get("Public facts of all models.", any_json, LOOKING),
        "/models/{name}": get("Public facts of a model.", any_json, LOOKING),
        "/metrics": get("Counts for Prometheus.", text, LOOKING),
    }


def description() -> Plain:
    """Return the whole description."""
    paths = _asking() | _looking()
    for path, item in list(paths.items()):
        named = [name for name in ("name", "version") if f"{{{name}}}" in path]
        if named:
            paths[path] = {**item}
            paths[path]["parameters"] = [
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in named
            ]
    return {
        "openapi": "3.1.0",
        "info": {"title": "cumae", "version": cumae.__version__, "x-format": WIRE_FORMAT},
        "paths": paths,
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


@remembered(1)
def text() -> bytes:
    """Return it as JSON."""
    return json.dumps(description()).encode()
