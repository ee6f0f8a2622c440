"""The Starlette server: sockets, auth, rates and metrics; all protocol logic is in `session`."""
