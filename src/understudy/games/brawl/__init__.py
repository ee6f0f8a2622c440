"""Brawl: a fast game for two on a symmetric stage."""

from understudy.games.brawl.bots import BOTS, bots
from understudy.games.brawl.rules import Brawl
from understudy.games.brawl.state import State

__all__ = ["BOTS", "Brawl", "State", "bots"]
