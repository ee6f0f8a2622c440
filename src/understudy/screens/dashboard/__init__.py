"""The dashboard: pages of runs, rendered here and kept up to date over a WebSocket."""
