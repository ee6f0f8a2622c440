"""Stores as processes of their own: moto's S3, rclone's S3, azurite, and a wire that is cut."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hmac
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

BUCKET = "bucket"
SECRET = "do-not-write-me-down"
_PATIENCE_S = 60.0


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def environment(port: int) -> dict[str, str]:
    """What a person sets to use a store of S3 on this machine."""
    return {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_ACCESS_KEY_ID": "understudy",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
    }


@contextlib.contextmanager
def moto() -> Iterator[int]:
    """The port of a real S3 protocol on loopback, in a process of its own, with one bucket."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
    try:
        _make_bucket(port)
        yield port
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def rclone(folder: Path) -> Iterator[int]:
    """The port of rclone's S3, which overwrites what exists."""
    program = Path(sys.executable).with_name("rclone")
    found = str(program) if program.exists() else shutil.which("rclone")
    assert found is not None
    (folder / BUCKET).mkdir(parents=True)
    port = free_port()
    keys = f"understudy,{SECRET}"
    command = [found, "serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", keys, str(folder)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        command, stdout=quiet, stderr=quiet, env={**os.environ, "RCLONE_CONFIG": os.devnull}
    )
    try:
        _wait_for(port)
        yield port
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def azurite(folder: Path) -> Iterator[int]:
    """The port of an emulator of Azure's blobs, with one container."""
    program = shutil.which("azurite-blob")
    assert program is not None
    port = free_port()
    command = [program, "--skipApiVersionCheck", "--silent", "--blobPort", str(port)]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(
        [*command, "--location", str(folder)], stdout=quiet, stderr=quiet, cwd=folder
    )
    try:
        _wait_for(port)
        _make_container(port)
        yield port
    finally:
        process.kill()
        process.wait()


def _make_container(port: int) -> None:
    """Azure has no way to make one without a signature; the emulator's key is public."""
    account, version, date = "devstoreaccount1", "2021-12-02", formatdate(usegmt=True)
    told = f"x-ms-date:{date}\nx-ms-version:{version}\n/{account}/{account}/{BUCKET}"
    signed = "PUT" + "\n" * 12 + told + "\nrestype:container"
    key = base64.b64decode(
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
    )
    mac = base64.b64encode(hmac.digest(key, signed.encode(), "sha256")).decode()
    headers = {
        "x-ms-date": date,
        "x-ms-version": version,
        "Authorization": f"SharedKey {account}:{mac}",
        "Content-Length": "0",
    }
    url = f"http://127.0.0.1:{port}/{account}/{BUCKET}?restype=container"
    request = urllib.request.Request(url, method="PUT", headers=headers)
    urllib.request.urlopen(request, timeout=_PATIENCE_S).close()


def has_rclone() -> bool:
    return Path(sys.executable).with_name("rclone").exists() or bool(shutil.which("rclone"))


def _make_bucket(port: int) -> None:
    _wait_for(port)
    request = urllib.request.Request(f"http://127.0.0.1:{port}/{BUCKET}", method="PUT")
    urllib.request.urlopen(request, timeout=_PATIENCE_S).close()


def _wait_for(port: int) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            assert time.monotonic() < deadline, "the store did not start"
            time.sleep(0.05)
        else:
            return


# --- a wire that can be cut ----------------------------------------------------------------------


async def forward(listen: int, to: int) -> None:
    """Pass bytes on between a port and a store. Killed, it cuts every request on its way."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, there[1]), pump(there[0], writer))

    server = await asyncio.start_server(connected, "127.0.0.1", listen, reuse_address=True)
    async with server:
        await server.serve_forever()
