"""The decision ledger: decisions with their answers, how they ended, and their episodes.

    with Ledger(folder, spec, segment=32, clock=clock, put=spool.put, sync_ms=50.0) as ledger:
        (key,) = ledger.take_ids(1)
        ledger.open([Opened(id=key, territory="north", client="c1", ...)])  # then answer
        ledger.close([Closing(id=key, state="settled", reward=0.5)])

Every opened decision ends in exactly one state, also across SIGKILL.
"""

from understudy.experience.ledger.index import DecisionCounts
from understudy.experience.ledger.ledger import Ledger
from understudy.experience.ledger.records import Added, Closing, Opened, pack_legal, unpack_legal

__all__ = ["Added", "Closing", "DecisionCounts", "Ledger", "Opened", "pack_legal", "unpack_legal"]
