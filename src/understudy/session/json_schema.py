"""The protocol as JSON Schema, made from the types that messages are decoded with.

docs/protocol.schema.json is what this gives; a test holds them equal. After a change:

    python -m understudy.session.json_schema > docs/protocol.schema.json
"""

from __future__ import annotations

import sys
from typing import Any, get_args

import msgspec

from understudy.session.protocol import PROTOCOL, Answer, Code, Error, Request

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """`$defs/FromClient` and `$defs/FromServer`, and every message by name beside them."""
    (client, server), messages = msgspec.json.schema_components(
        (Request, Answer), ref_template="#/$defs/{name}"
    )
    # A server may learn new codes; a client has to take those that it does not know.
    messages[Error.__name__]["properties"]["code"] = {
        "type": "string",
        "examples": list(get_args(Code)),
    }
    return {
        "$schema": _DRAFT,
        "title": f"Understudy live protocol {PROTOCOL}",
        "anyOf": [{"$ref": "#/$defs/FromClient"}, {"$ref": "#/$defs/FromServer"}],
        "$defs": {"FromClient": client, "FromServer": server, **dict(sorted(messages.items()))},
    }


def text() -> str:
    """As the file has it."""
    return msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode() + "\n"


if __name__ == "__main__":
    sys.stdout.write(text())
