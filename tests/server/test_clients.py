"""Names of clients: whoever was given one gets it back, also after a restart, and nobody else."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from session.sessions import Table, game

from understudy.core import files
from understudy.core.errors import RunFolderError
from understudy.server import clients as clients_module
from understudy.server.clients import Clients
from understudy.web.refusal import Refusal


def kept(folder: Path, holds: Callable[[str], bool] = lambda client: False) -> Clients:
    return Clients(folder, holds)


def refused(answer: str | Refusal) -> str:
    assert isinstance(answer, Refusal)
    return answer.code


def test_a_name_is_given_once_and_then_only_for_its_key(tmp_path: Path) -> None:
    clients = kept(tmp_path / "server")
    assert clients.enter("north", None) == "north"
    assert refused(clients.enter("north", None)) == "name_taken"
    assert refused(clients.enter("north", "guess")) == "name_taken"
    assert refused(clients.enter("north", clients.resume_key("south"))) == "name_taken"
    assert clients.enter("north", clients.resume_key("north")) == "north"


def test_the_same_after_a_restart(tmp_path: Path) -> None:
    before = kept(tmp_path / "server")
    before.enter("north", None)
    nobody = before.enter(None, None)
    assert isinstance(nobody, str)
    after = kept(tmp_path / "server")
    assert refused(after.enter("north", None)) == "name_taken"
    assert after.enter("north", before.resume_key("north")) == "north"
    assert after.enter(nobody, before.resume_key(nobody)) == nobody


def test_whoever_has_no_name_gets_one_that_nobody_can_claim(tmp_path: Path) -> None:
    clients = kept(tmp_path / "server")
    first, second = clients.enter(None, None), clients.enter(None, None)
    assert isinstance(first, str) and first != second
    assert refused(clients.enter(first, None)) == "name_taken"
    assert refused(clients.enter("anonymous-me", None)) == "name_taken"
    assert refused(clients.enter(None, "key")) == "name_taken"


def test_another_run_has_other_keys(tmp_path: Path) -> None:
    one, other = kept(tmp_path / "a"), kept(tmp_path / "b")
    assert one.resume_key("north") != other.resume_key("north")


# --- a limited number of names ------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """Names that are kept in the tests below."""
    monkeypatch.setattr(clients_module, "_MOST_NAMES", 10)
    return 10


def test_names_that_are_idle_make_room_for_others(tmp_path: Path, few: int) -> None:
    clients = kept(tmp_path)
    for number in range(200):
        assert clients.enter(f"c{number}", None) == f"c{number}"
    assert len(clients) == few
    assert len((tmp_path / "clients").read_text(encoding="utf-8").split()) <= 2 * few
    assert refused(clients.enter("c199", None)) == "name_taken"
    again = kept(tmp_path)
    assert again.enter("another", None) == "another"
    assert len(again) == few


def test_a_client_that_is_held_keeps_its_name(tmp_path: Path, few: int) -> None:
    held = {f"c{number}" for number in range(few)}
    clients = kept(tmp_path, lambda client: client in held)
    for name in sorted(held):
        clients.enter(name, None)
    assert refused(clients.enter("another", None)) == "full"
    assert isinstance(clients.enter(None, None), str)
    held.remove("c3")
    assert clients.enter("another", None) == "another"
    assert refused(clients.enter("c4", None)) == "name_taken"


def test_a_key_brings_a_freed_name_back_unless_another_client_has_it(
    tmp_path: Path, few: int
) -> None:
    clients = kept(tmp_path)
    keys = {}
    for name in ("mine", "lost"):
        clients.enter(name, None)
        keys[name] = clients.resume_key(name)
    for number in range(few):
        clients.enter(f"c{number}", None)
    assert clients.enter("lost", None) == "lost"
    assert clients.enter("mine", keys["mine"]) == "mine"
    assert clients.resume_key("mine") == keys["mine"]
    assert clients.resume_key("lost") != keys["lost"]
    assert refused(clients.enter("lost", keys["lost"])) == "name_taken"


def test_a_flood_of_names_costs_no_client_its_open_decisions(tmp_path: Path, few: int) -> None:
    table = Table(tmp_path / "ledger", translator=game())
    clients = kept(tmp_path, table.session.holds)
    clients.enter("alice", None)
    key = clients.resume_key("alice")
    decision = table.ask(client="alice")["decision_id"]  # and then alice's game crashes
    for number in range(3 * few):
        clients.enter(f"c{number}", None)
    assert refused(clients.enter("alice", None)) == "name_taken"
    assert clients.enter("alice", key) == "alice"
    reward = {"type": "reward", "decision_id": decision, "reward": 1}
    assert table.say(reward, client="alice")[0]["status"] == "settled"
    table.later(61.0)
    for number in range(3 * few):
        clients.enter(f"d{number}", None)
    assert clients.enter("alice", None) == "alice", "there is nothing left of it"


def test_names_and_keys_of_earlier_programs_still_fit(tmp_path: Path) -> None:
    kept(tmp_path)
    (tmp_path / "clients").write_text("\nnorth\n", encoding="utf-8")
    secret = (tmp_path / "secret").read_bytes()
    digest = hmac.digest(secret, b"north", hashlib.sha256)
    key = base64.urlsafe_b64encode(digest).decode().rstrip("=")
    clients = kept(tmp_path)
    assert refused(clients.enter("north", None)) == "name_taken"
    assert clients.enter("north", key) == "north"
    assert clients.resume_key("north") == key


def test_a_full_disk_gives_no_name_that_could_be_given_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = kept(tmp_path / "server")

    def full(path: Path, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "append", full)
        assert refused(clients.enter("north", None)) == "unavailable"
        assert isinstance(clients.enter(None, None), str)
    assert clients.enter("north", None) == "north"


def test_a_name_that_was_cut_short_by_a_full_disk_leaves_the_next_one_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients, whole = kept(tmp_path / "server"), files.append

    def full(path: Path, data: bytes) -> None:
        whole(path, data[:4])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "append", full)
        assert refused(clients.enter("north", None)) == "unavailable"
    assert clients.enter("south", None) == "south"
    after = kept(tmp_path / "server")
    assert refused(after.enter("south", None)) == "name_taken"
    assert after.enter("north", None) == "north"


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_a_name_that_was_cut_short_takes_no_other_client_its_key(tmp_path: Path) -> None:
    clients = kept(tmp_path)
    clients.enter("alice", None)
    key = clients.resume_key("alice")
    with (tmp_path / "clients").open("ab") as file:
        file.write(b"\nalice")  # of "alice2:..."
    assert kept(tmp_path).enter("alice", key) == "alice"


def test_the_secret_is_the_owners(tmp_path: Path) -> None:
    kept(tmp_path / "server")
    assert (tmp_path / "server").stat().st_mode & 0o077 == 0


def test_a_damaged_secret_is_said(tmp_path: Path) -> None:
    kept(tmp_path / "server")
    (tmp_path / "server" / "secret").write_bytes(b"short")
    with pytest.raises(RunFolderError, match="expected 32 bytes, got 5"):
        kept(tmp_path / "server")
