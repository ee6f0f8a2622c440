"""A real dashboard on loopback, in a thread, and how to talk to it."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import ClientConnection, connect

from understudy.run.dashboard import DashboardOptions, dashboard

_COMPAT = Path(__file__).parent.parent / "compat" / "runs"


def unpacked(folder: Path, *names: str) -> Path:
    """Run folders that an earlier program wrote, by name: a ring, a served run and so on."""
    for name in names:
        (found,) = sorted(_COMPAT.glob(f"*/{name}.zip"))[-1:]
        with zipfile.ZipFile(found) as archive:
            inside = [one for one in archive.namelist() if one.startswith("run/")]
            archive.extractall(folder / f".{name}", inside)
        (folder / f".{name}" / "run").rename(folder / name)
    return folder


@dataclass(frozen=True)
class Standing:
    """A dashboard that runs."""

    url: str

    def ask(
        self, path: str, *, method: str = "GET", body: object = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        """Status, headers and body of an answer."""
        place = urlsplit(self.url)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=60)
        sent = None if body is None else json.dumps(body)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, sent, given)
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read().decode()
        finally:
            connection.close()

    def act(self, run: str, action: str, **asked: Any) -> tuple[int, dict[str, str]]:
        """Do what a page does after a person confirmed it."""
        status, _, text = self.ask(
            f"/runs/{run}/do/{action}", method="POST", body=asked, Content_Type="application/json",
            Origin=self.url,
        )  # fmt: skip
        return status, json.loads(text)

    @contextlib.contextmanager
    def follow(self, page: str, run: str = "", **headers: str) -> Iterator[ClientConnection]:
        """The updates of a page, of which a reader has nothing yet."""
        url = f"{self.url.replace('http', 'ws')}/live"
        with connect(url, additional_headers=headers) as socket:
            socket.send(json.dumps({"page": page, "run": run}))
            yield socket


@contextlib.contextmanager
def standing(*folders: Path, port: int = 0, **options: Any) -> Iterator[Standing]:
    """A dashboard of these folders, by default on a free port."""
    told: list[str] = []
    ready, ended = threading.Event(), threading.Event()

    def started(url: str) -> None:
        told.append(url)
        ready.set()

    chosen = DashboardOptions(folders=folders, port=port, **options)
    thread = threading.Thread(
        target=dashboard, args=(chosen,), kwargs={"started": started, "ended": ended}, daemon=True
    )
    thread.start()
    try:
        assert ready.wait(60), "the dashboard did not start"
        yield Standing(told[0])
    finally:
        ended.set()
        thread.join(30)
