"""A stand-in of Google Cloud Storage on loopback: as much of its XML API as a relay uses.

Written from Google's description of that API, since no emulator that could be installed by name
speaks it (docs/relay.md says what was tried). What it proves is our side: that `gs://` asks for
create-if-absent, and takes the answers for what they are.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape


class GoogleStorage(ThreadingHTTPServer):
    """One bucket in memory. `overwrites`: preconditions are ignored."""

    def __init__(self, *, overwrites: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.overwrites = overwrites
        self.objects: dict[str, tuple[int, bytes]] = {}
        """By path, each with its generation."""
        self.conditions: list[str | None] = []
        """What each write said of the generation that it expects."""
        self.lock = threading.Lock()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: GoogleStorage

    @property
    def _object(self) -> str:
        return unquote(urlsplit(self.path).path)

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        wanted = self.headers.get("x-goog-if-generation-match")
        with self.server.lock:
            self.server.conditions.append(wanted)
            now, _ = self.server.objects.get(self._object, (0, b""))
            if wanted is not None and int(wanted) != now and not self.server.overwrites:
                self._say(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            self.server.objects[self._object] = now + 1, data
        self._say(200, b"", generation=now + 1)

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        asked = parse_qs(parts.query)
        if "list-type" in asked:
            self._list(f"{unquote(parts.path)}/", asked["prefix"][0])
            return
        with self.server.lock:
            found = self.server.objects.get(self._object)
        if found is None:
            self._say(404, b"<Error><Code>NoSuchKey</Code></Error>")
        else:
            self._say(200, found[1], generation=found[0])

    def do_DELETE(self) -> None:
        with self.server.lock:
            found = self.server.objects.pop(self._object, None)
        self._say(404 if found is None else 204, b"")

    def _list(self, bucket: str, prefix: str) -> None:
        with self.server.lock:
            there = sorted(self.server.objects.items())
        rows = "".join(
            f"<Contents><Key>{escape(path.removeprefix(bucket))}</Key><Size>{len(data)}</Size>"
            f"<Generation>{generation}</Generation><ETag>&quot;{generation}&quot;</ETag>"
            "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
            for path, (generation, data) in there
            if path.startswith(bucket + prefix)
        )
        body = f"<?xml version='1.0' encoding='UTF-8'?><ListBucketResult>{rows}</ListBucketResult>"
        self._say(200, body.encode())

    def _say(self, status: int, body: bytes, *, generation: int = 0) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Last-Modified", formatdate(usegmt=True))
        self.send_header("ETag", f'"{generation}"')
        self.send_header("x-goog-generation", str(generation))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        pass


@contextlib.contextmanager
def google_storage(*, overwrites: bool = False) -> Iterator[GoogleStorage]:
    server = GoogleStorage(overwrites=overwrites)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


def account(folder: Path, port: int) -> dict[str, str]:
    """The environment that names a store of Google on this machine: a service account's file may
    say where the service is, and that it asks for no key."""
    path = folder / "account.json"
    told = {
        "gcs_base_url": f"http://127.0.0.1:{port}",
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    path.write_text(json.dumps(told), encoding="utf-8")
    return {"GOOGLE_SERVICE_ACCOUNT": str(path), "GOOGLE_ALLOW_HTTP": "true"}
