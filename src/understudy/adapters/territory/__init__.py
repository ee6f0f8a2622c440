"""The territory game behind a server: its messages, translator, gate and remote client."""
