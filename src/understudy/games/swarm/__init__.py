"""Swarm: the strategic layer of a real-time strategy bot, as a game of its own."""

from understudy.games.swarm.bots import BOTS
from understudy.games.swarm.rules import Swarm
from understudy.games.swarm.state import State

__all__ = ["BOTS", "State", "Swarm"]
