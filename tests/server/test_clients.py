"""Names of clients: whoever was given one gets it back, also after a restart, and nobody else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from understudy.core import files
from understudy.core.errors import RunFolderError
from understudy.server.clients import Clients
from understudy.server.refusal import Refusal


def refused(answer: str | Refusal) -> str:
    assert isinstance(answer, Refusal)
    return answer.code


def test_a_name_is_given_once_and_then_only_for_its_key(tmp_path: Path) -> None:
    clients = Clients(tmp_path / "server")
    assert clients.enter("north", None) == "north"
    assert refused(clients.enter("north", None)) == "name_taken"
    assert refused(clients.enter("north", "guess")) == "name_taken"
    assert refused(clients.enter("north", clients.resume_key("south"))) == "name_taken"
    assert clients.enter("north", clients.resume_key("north")) == "north"


def test_the_same_after_a_restart(tmp_path: Path) -> None:
    before = Clients(tmp_path / "server")
    before.enter("north", None)
    nobody = before.enter(None, None)
    assert isinstance(nobody, str)
    after = Clients(tmp_path / "server")
    assert refused(after.enter("north", None)) == "name_taken"
    assert after.enter("north", before.resume_key("north")) == "north"
    assert after.enter(nobody, before.resume_key(nobody)) == nobody


def test_whoever_has_no_name_gets_one_that_nobody_can_claim(tmp_path: Path) -> None:
    clients = Clients(tmp_path / "server")
    first, second = clients.enter(None, None), clients.enter(None, None)
    assert isinstance(first, str) and first != second
    assert refused(clients.enter(first, None)) == "name_taken"
    assert refused(clients.enter("anonymous-me", None)) == "name_taken"
    assert refused(clients.enter(None, "key")) == "name_taken"


def test_another_run_has_other_keys(tmp_path: Path) -> None:
    one, other = Clients(tmp_path / "a"), Clients(tmp_path / "b")
    assert one.resume_key("north") != other.resume_key("north")


def test_a_full_disk_gives_no_name_that_could_be_given_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clients = Clients(tmp_path / "server")

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
    clients, whole = Clients(tmp_path / "server"), files.append

    def full(path: Path, data: bytes) -> None:
        whole(path, data[:4])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files, "append", full)
        assert refused(clients.enter("north", None)) == "unavailable"
    assert clients.enter("south", None) == "south"
    after = Clients(tmp_path / "server")
    assert refused(after.enter("south", None)) == "name_taken"
    assert after.enter("north", None) == "north"


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_the_secret_is_the_owners(tmp_path: Path) -> None:
    Clients(tmp_path / "server")
    assert (tmp_path / "server").stat().st_mode & 0o077 == 0


def test_a_damaged_secret_is_said(tmp_path: Path) -> None:
    Clients(tmp_path / "server")
    (tmp_path / "server" / "secret").write_bytes(b"short")
    with pytest.raises(RunFolderError, match="expected 32 bytes, got 5"):
        Clients(tmp_path / "server")
