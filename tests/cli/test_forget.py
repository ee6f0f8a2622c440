"""`understudy forget` as a person types it."""

from __future__ import annotations

from pathlib import Path

from walk.toys import SetClock, episode, open_run, settings, spool_of

from understudy.experience.episode import Meta, Outcome

from .calling import understudy


def test_it_says_what_was_set_aside(tmp_path: Path) -> None:
    folder = open_run(tmp_path / "run", settings(), SetClock())
    for number, client in enumerate(("c7", "c8", "c7")):
        meta = Meta(
            id=f"live-{number}", outcome=Outcome.TIE, finished_at=1.0, tags={"client": client}
        )
        spool_of(folder).put(episode(meta.id, meta=meta))
    (folder.root / "archive" / "odd\x1b.npz").write_bytes(b"?")
    called = understudy("forget", "--run", folder.root, "--client", "c7", "--json")
    assert called.code == 0
    assert called.json == {
        "run": str(folder.root), "client": "c7", "waiting": 2, "archived": 0, "decisions": 6,
        "learned_by": None, "unread": ["odd\x1b.npz"],
    }  # fmt: skip
    called = understudy("forget", "--run", folder.root, "--client", "c8")
    assert "1 episodes of c8" in called.out and r"odd\x1b.npz" in called.out


def test_a_folder_without_a_run_is_an_error(tmp_path: Path) -> None:
    called = understudy("forget", "--run", tmp_path, "--client", "c7")
    assert called.code == 2 and "not a run folder" in called.err
    assert understudy("forget", "--run", tmp_path).code == 2
