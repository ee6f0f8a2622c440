"""Territory: a queen, her parasites, and a player who does not want them; live and endless."""

from understudy.games.territory.bots import BOTS
from understudy.games.territory.rules import Territory
from understudy.games.territory.state import State

__all__ = ["BOTS", "State", "Territory"]
