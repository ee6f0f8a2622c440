"""The peer of `serve_load.py`: a bare Starlette WebSocket that sends back what it was sent.

It parses nothing, decides nothing and keeps nothing: what it costs is what uvicorn and Starlette
cost, on the same event loop and with the same settings as `understudy serve`.

python benchmarks/serve_echo.py --port 8766
"""

from __future__ import annotations

import argparse

import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect


async def echo(socket: WebSocket) -> None:
    await socket.accept()
    try:
        while True:
            await socket.send_text(await socket.receive_text())
    except WebSocketDisconnect:
        return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    arguments = parser.parse_args()
    app = Starlette(routes=[WebSocketRoute("/ws", echo)])
    uvicorn.run(
        app, host="127.0.0.1", port=arguments.port, log_level="warning", access_log=False,
        ws_per_message_deflate=False,
    )  # fmt: skip


if __name__ == "__main__":
    main()
