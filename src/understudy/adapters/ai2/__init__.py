"""The AI² tournament: a user's own checkout of its game as a Gymnasium or PettingZoo environment.

Nothing of the tournament is in this package. `checkout` finds the user's copy, `game_process` runs
each game in a process of its own (`game_child` is the other side of the pipe), `layout` names its
observations and keys, `env` makes environments of it, and `stand_in` writes a folder with the same
interface over rules of our own, for tests and for trying things out.
"""
