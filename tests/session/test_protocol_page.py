"""docs/protocol.md: every example is what a session really answers, and nothing is left out.

python tests/session/test_protocol_page.py      writes the answers into the page
"""

from __future__ import annotations

import functools
import json
import operator
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import msgspec
import pytest

from understudy.adapters.territory.translator import TerritoryTranslator
from understudy.session import protocol
from understudy.session.schema import load

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from session.sessions import Table
else:
    from .sessions import Table

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "protocol.md"
_BLOCK = re.compile(
    r"^```dialog(?P<game> territory)?\n(?P<lines>.*?)^```$", re.DOTALL | re.MULTILINE
)
_MESSAGE = re.compile(
    r"^(?P<way>[→←]) (?:(?P<client>\w+) )?(?P<text>\S.*?)(?=^[→←]|\Z)", re.DOTALL | re.MULTILINE
)
_POLICYS = {
    "action", "confidence", "skipped", "skipReason", "spawnChunk", "spawnType", "typeConfidence",
}  # fmt: skip


class Dialog(NamedTuple):
    """A message, what the page says is answered, and what is."""

    client: str
    sent: str
    told: str
    answer: dict[str, Any]


def dialogs(page: str) -> list[re.Match[str]]:
    return list(_BLOCK.finditer(page))


def answered(block: re.Match[str], folder: Path) -> Iterator[Dialog]:
    translator = (
        TerritoryTranslator() if block["game"] else load(DOCS / "examples" / "my_game.toml")
    )
    table = Table(folder, translator=translator)
    messages = list(_MESSAGE.finditer(block["lines"]))
    for index, one in enumerate(messages):
        if one["way"] == "←":
            continue
        after = messages[index + 1] if index + 1 < len(messages) else None
        told = after["text"] if after is not None and after["way"] == "←" else ""
        client = one["client"] or "alice"
        (answer,) = table.say(one["text"].strip(), client=client)
        yield Dialog(one["client"] or "", one["text"], told, answer)


@pytest.mark.parametrize("index", range(len(dialogs(PAGE.read_text(encoding="utf-8")))))
def test_the_examples_are_what_is_answered(tmp_path: Path, index: int) -> None:
    for one in answered(dialogs(PAGE.read_text(encoding="utf-8"))[index], tmp_path):
        told = json.loads(one.told)
        assert told.keys() == one.answer.keys()
        free = {name: told[name] for name in _POLICYS & told.keys()}
        assert {**one.answer, **free} == told, one.sent


def test_every_message_field_and_code_is_on_the_page() -> None:
    page = PAGE.read_text(encoding="utf-8")
    kinds = (*protocol.request_types(), *protocol.answer_types())
    words = [str(kind.__struct_config__.tag) for kind in kinds] + list(get_args(protocol.Code))
    words += [field.encode_name for kind in kinds for field in msgspec.structs.fields(kind)]
    missing = sorted({word for word in words if not re.search(rf"[`\"]{word}[`\"]", page)})
    assert not missing


def test_every_example_of_a_message_fits_the_types() -> None:
    page = PAGE.read_text(encoding="utf-8")
    answer = functools.reduce(operator.or_, protocol.answer_types())
    for block in re.finditer(r"^```json\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        msgspec.json.decode(block[1], type=answer)


def _rounded(answer: dict[str, Any]) -> dict[str, Any]:
    return {k: round(v, 3) if isinstance(v, float) else v for k, v in answer.items()}


def write() -> None:
    """Put the real answers under the messages."""
    page = PAGE.read_text(encoding="utf-8")
    for block in reversed(dialogs(page)):
        with tempfile.TemporaryDirectory() as folder:
            lines = "".join(
                f"→ {one.client + ' ' if one.client else ''}{one.sent.rstrip()}\n"
                f"← {json.dumps(_rounded(one.answer))}\n"
                for one in answered(block, Path(folder))
            )
        page = page[: block.start("lines")] + lines + page[block.end("lines") :]
    PAGE.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    write()
