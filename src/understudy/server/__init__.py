"""The server: Starlette around `live.session`, which does all the thinking."""
