"""A live game's session: messages in, messages out, no I/O."""
