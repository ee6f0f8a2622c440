"""Brawl as one writes it without arrays: one match, Python numbers, `if`s and a Gymnasium's loop.

It is the peer of `game_throughput.py`, and the slow and obvious reference that
`tests/games/test_brawl_plain.py` holds the array rules against, frame by frame.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from understudy.games.brawl import tables as t

_MASK = 0xFFFFFFFF
_F = {name: float(value) for name, value in vars(t).items() if getattr(value, "shape", 0) == ()}
_MOVES = [t.Move(*(float(number) for number in column)) for column in t.MOVE_TABLE.T]
_LOOKS = [tuple(float(number) for number in column) for column in t.LOOKS.T]
_CHORDS = [frozenset(keys) for keys in t.CHORDS.values()]
_INNER, _OUTER = _F["PIT"] - _F["HALF_WIDTH"], _F["LEDGE"] + _F["HALF_WIDTH"]
TIMERS = ("jump_wait", "turn_wait", "hand_wait", "dodge_wait", "dodge", "dash", "stun", "wait",
          "out", "safe")  # fmt: skip


def _mix(word: int) -> int:
    word = ((word ^ (word >> 16)) * 0x7FEB352D) & _MASK
    word = ((word ^ (word >> 15)) * 0x846CA68B) & _MASK
    return word ^ (word >> 16)


def _fold(key: int, word: int) -> int:
    return _mix((key * 0x9E3779B9 + word) & _MASK)


def _uniform(key: int, index: int) -> float:
    inner = _mix((index + 0x9E3779B9) & _MASK)
    return (_mix((key * 0x9E3779B9 + inner) & _MASK) >> 8) * 2.0**-24


@dataclass
class Fighter:
    """One player; the names are those of `brawl.State`."""

    x: float = 0.0
    y: float = 0.0
    vx: float = 0.0
    vy: float = 0.0
    facing: float = 1.0
    grounded: bool = True
    carried: bool = False
    stride: float = 0.0
    jumps: float = 2.0
    recoveries: float = 1.0
    jump_wait: float = 0.0
    turn_wait: float = 0.0
    hand_wait: float = 0.0
    dodge_wait: float = 0.0
    dodge: float = 0.0
    dash: float = 0.0
    stun: float = 0.0
    wait: float = 0.0
    out: float = 0.0
    safe: float = 0.0
    move: int = 0
    move_clock: float = 0.0
    struck: bool = False
    weapon: int = 0
    damage: float = 0.0
    stocks: float = 3.0
    chain: float = 0.0
    dealt: float = 0.0
    knocked_out: bool = False
    equipped: bool = False
    dropped: bool = False
    combo: bool = False


@dataclass
class PlainBrawl:
    """One match: `obs = reset(seed)`, then `obs, rewards, over = step(chords)` until over."""

    frame: int = 0
    key: int = 0
    tilt: float = 1.0
    phase: int = 0
    platform: tuple[float, float] = (0.0, 0.0)
    item: int = 0
    item_x: float = 0.0
    item_clock: float = 0.0
    fighters: list[Fighter] = field(default_factory=lambda: [Fighter(), Fighter()])

    def reset(self, seed: int) -> list[list[float]]:
        """A new match."""
        self.key = _fold(seed, t.VERSION)
        draw = [_uniform(self.key, index) for index in range(10)]
        side = 1.0 if draw[0] < 0.5 else -1.0
        self.frame, self.item, self.item_x = 0, 0, 0.0
        self.phase = int(draw[3] * t.PLATFORM_PERIOD)
        self.tilt = 1.0 if draw[4] < 0.5 else -1.0
        self.platform = self._platform(0)
        self.item_clock = _F["FIRST_WEAPON"] + draw[5] * _F["WEAPON_WAIT_SPREAD"]
        self.fighters = [
            Fighter(
                x=(side if slot == 0 else -side) * (2.6 + draw[1 + slot] * 3.8),
                facing=1.0 if draw[6 + slot] < 0.5 else -1.0,
                wait=float(int(draw[8 + slot] * _F["START_WAIT"])),
            )
            for slot in range(2)
        ]
        return self.observe()

    def step(self, chords: tuple[int, int]) -> tuple[list[list[float]], list[float], bool]:
        """One frame further."""
        return self.press([_CHORDS[chord] for chord in chords])

    def press(self, keys: list[frozenset[str]]) -> tuple[list[list[float]], list[float], bool]:
        """The same with the keys that each holds."""
        apart = self._apart()
        key = _fold(self.key, self.frame)
        for me, held in zip(self.fighters, keys, strict=True):
            self._begin(me, held)
        speeds = [self._steer(me, held) for me, held in zip(self.fighters, keys, strict=True)]
        for me, (vx, vy) in zip(self.fighters, speeds, strict=True):
            me.vx, me.vy = vx, vy
        here, self.platform = self.platform, self._platform(self.frame + 1)
        for me, held in zip(self.fighters, keys, strict=True):
            self._travel(me, held, here)
        self._strike()
        self._hands(keys)
        self._supply(key)
        for me in self.fighters:
            for name in TIMERS:
                left = getattr(me, name)
                if left > 0:
                    setattr(me, name, max(left - 1.0, 0.0))
        self._knock_out()
        self.frame += 1
        return self.observe(), self._rewards(apart), self.over

    @property
    def over(self) -> bool:
        """Somebody has no stock left, or time is up."""
        return self.frame >= t.MAX_FRAMES or any(me.stocks <= 0 for me in self.fighters)

    def _platform(self, frame: int) -> tuple[float, float]:
        along = ((frame + self.phase) % t.PLATFORM_PERIOD) * 4 / t.PLATFORM_PERIOD
        wave = abs(along - 2) - 1
        return (
            self.tilt * wave * _F["PLATFORM_REACH_X"],
            _F["PLATFORM_Y"] + wave * _F["PLATFORM_REACH_Y"],
        )

    def _begin(self, me: Fighter, keys: frozenset[str]) -> None:
        if me.stun > 0 or me.wait > 0 or me.out > 0 or me.move != t.NO_MOVE or me.dodge > 0:
            return
        forward, back = "d" in keys, "a" in keys
        if back and "l" not in keys and me.turn_wait <= 0 and me.dash <= 0:
            me.facing, me.turn_wait = -me.facing, _F["TURN_WAIT"]
        if "l" in keys and me.dodge_wait <= 0 and me.dash <= 0:
            if me.grounded and forward:
                me.vx, me.dash = me.facing * _F["DASH_SPEED"], _F["DASH_FRAMES"]
                me.dodge_wait = _F["DASH_WAIT"]
            elif me.grounded and back:
                me.vx, me.dash = -me.facing * _F["BACKDASH_SPEED"], _F["BACKDASH_FRAMES"]
                me.dodge_wait = _F["DASH_WAIT"]
            else:
                me.dodge = _F["DODGE_FRAMES"]
                me.dodge_wait = _F["DODGE_WAIT" if me.grounded else "AIR_DODGE_WAIT"]
            return
        if "space" in keys and me.jump_wait <= 0 and (me.grounded or me.jumps > 0):
            if not me.grounded:
                me.jumps -= 1
            if forward:
                me.vx = me.facing * max(me.vx * me.facing, _F["LEAP_SPEED"])
            me.vy, me.jump_wait = _F["JUMP_SPEED"], _F["JUMP_WAIT"]
            me.grounded = me.carried = False
            return
        self._begin_move(me, keys)

    def _begin_move(self, me: Fighter, keys: frozenset[str]) -> None:
        heavy, down = "k" in keys, "s" in keys
        if heavy or "j" in keys:
            aim = 2 if down else 1 if "d" in keys or "a" in keys else 0
            number = (3 if heavy else 0) + aim if me.grounded else 6 + aim
            if heavy and "w" in keys:
                if me.recoveries <= 0:
                    return
                me.recoveries -= 1
                me.grounded = me.carried = False
                number = t.RECOVERY
            elif heavy and down and not me.grounded:
                number = t.GROUND_POUND
            me.move = t.FIRST_MOVE + me.weapon * len(t.MOVES) + number
        elif "g" in keys and me.grounded:
            me.move = t.TAUNT_MOVE
        else:
            return
        me.move_clock, me.struck = 0.0, False
        move = _MOVES[me.move]
        if move.push_x:
            me.vx = me.facing * move.push_x
        if move.push_y:
            me.vy = move.push_y

    def _steer(self, me: Fighter, keys: frozenset[str]) -> tuple[float, float]:
        other = self.fighters[1] if me is self.fighters[0] else self.fighters[0]
        stunned, swinging = me.stun > 0, me.move != t.NO_MOVE
        able = not stunned and me.wait <= 0 and me.out <= 0
        forward = (able and "d" in keys and me.dodge <= 0) or me.turn_wait == _F["TURN_WAIT"]
        walks = forward and not (swinging and me.grounded)
        me.stride = min(me.stride + 1, _F["STRIDE"]) if walks and me.grounded else 0.0
        if me.dash > 0:
            me.stride = _F["STRIDE"]
        if me.grounded:
            pace = _F["RUN" if me.stride >= _F["STRIDE"] else "WALK"]
            grip = _F["STUN_GRIP" if stunned else "SWING_GRIP" if swinging else "GRIP"]
        else:
            pace, grip = _F["AIR"], _F["STUN_AIR_GRIP" if stunned else "AIR_GRIP"]
        if me.dash > 0:
            grip = 0.0
        wanted = me.facing * pace if walks else 0.0
        vx = me.vx + max(min(wanted - me.vx, grip), -grip)
        gap, rise = other.x - me.x, other.y - me.y
        solid = me.dodge <= 0 and me.safe <= 0 and other.dodge <= 0 and other.safe <= 0
        touch = abs(gap) < _F["BODY_GAP"] and abs(rise) < _F["BODY_RISE"]
        if touch and solid and gap * vx > 0 and not stunned:
            vx = 0.0
        fast = able and "s" in keys and not me.grounded
        fall = _F["FALL"] + (_F["FAST_FALL"] if fast else 0.0)
        most = _F["FAST_FALL_MAX" if fast or me.vy < -_F["FALL_MAX"] else "FALL_MAX"]
        return (vx, max(me.vy - fall, -most)) if me.out <= 0 else (0.0, 0.0)

    def _travel(self, me: Fighter, keys: frozenset[str], here: tuple[float, float]) -> None:
        there = self.platform
        x = me.x + me.vx * _F["DT"] + (there[0] - here[0] if me.carried else 0.0)
        y = me.y + me.vy * _F["DT"]
        inside = _INNER < abs(x) < _OUTER and y <= 0
        onto = inside and me.y >= -_F["STEP_UP"] and me.vy <= 0
        if inside and not onto and y < -_F["STEP_UP"]:
            stop = _INNER if abs(x) < (_F["PIT"] + _F["LEDGE"]) / 2 else _OUTER
            x, me.vx = (-stop if x < 0 else stop), 0.0
        through = "s" in keys and "j" not in keys and "k" not in keys
        near = abs(x - there[0]) < _F["PLATFORM_HALF"] + _F["HALF_WIDTH"]
        lands = me.y >= here[1] - 0.05 and y <= there[1] and me.vy <= 0
        aboard = near and not through and (lands or me.carried)
        me.x = x
        me.grounded = (onto or aboard) and me.out <= 0
        me.carried = aboard and not onto and me.grounded
        if me.out <= 0:
            me.y = 0.0 if onto else there[1] if aboard else y
        if me.grounded:
            me.vy, me.jumps, me.recoveries = 0.0, _F["AIR_JUMPS"], 1.0

    def _strike(self) -> None:
        hits = []
        for slot, me in enumerate(self.fighters):
            other, move = self.fighters[1 - slot], _MOVES[me.move]
            active = move.startup <= me.move_clock < move.startup + move.active
            ahead, above = (other.x - me.x) * me.facing, other.y - me.y
            touches = (
                abs(ahead - move.ahead) < move.half_width + _F["HALF_WIDTH"]
                and abs(above - move.above) < move.half_height + _F["HALF_HEIGHT"]
            )
            open_to = other.dodge <= 0 and other.safe <= 0 and other.out <= 0
            hits.append(active and touches and open_to and not me.struck)
        moves = [_MOVES[me.move] for me in self.fighters]
        stunned = [me.stun > 0 for me in self.fighters]
        for slot, me in enumerate(self.fighters):
            mine, theirs, hurt = moves[slot], moves[1 - slot], hits[1 - slot]
            me.dealt = mine.damage if hits[slot] else 0.0
            me.combo = hits[slot] and stunned[1 - slot]
            me.chain = me.chain + (1.0 if hurt else 0.0) if stunned[slot] else 0.0
            if hurt:
                me.damage += theirs.damage
                force = theirs.fixed + theirs.variable * (me.damage / 70 + me.damage**2 / 12000)
                speed = force * _F["FORCE_SPEED"]
                me.vx = self.fighters[1 - slot].facing * theirs.away * speed
                me.vy = theirs.up * speed
                stun = theirs.stun + speed * _F["STUN_PER_SPEED"]
                me.stun = max(stun - me.chain * _F["COMBO_RELIEF"], _F["STUN_LEAST"])
                me.dash = 0.0
                if theirs.up > 0:
                    me.grounded = me.carried = False
            me.struck = me.struck or hits[slot]
            me.move_clock += 1
            if hurt or me.move_clock >= mine.startup + mine.active + mine.recovery:
                me.move, me.move_clock, me.struck = t.NO_MOVE, 0.0, False

    def _hands(self, keys: list[frozenset[str]]) -> None:
        item, taken = self.item, False
        for me, held in zip(self.fighters, keys, strict=True):
            me.equipped = me.dropped = False
            busy = me.stun > 0 or me.wait > 0 or me.out > 0 or me.move or me.hand_wait > 0
            if "h" not in held or busy:
                continue
            if (
                item
                and abs(me.x - self.item_x) < _F["HAND_REACH_X"]
                and abs(me.y) < _F["HAND_REACH_Y"]
            ):
                me.weapon, me.equipped, taken = item, True, True
            elif me.weapon:
                me.weapon, me.dropped = 0, True
            else:
                continue
            me.hand_wait = _F["HAND_WAIT"]
        if taken:
            self.item_clock = 0.0

    def _supply(self, key: int) -> None:
        if self.item_clock > 0:
            self.item_clock -= 1
        elif self.item:
            self.item, self.item_x = 0, 0.0
            self.item_clock = _F["WEAPON_WAIT"] + _uniform(key, 3) * _F["WEAPON_WAIT_SPREAD"]
        else:
            side = self.tilt if _uniform(key, 1) < 0.5 else -self.tilt
            self.item = 1 + int(_uniform(key, 0) * (len(t.WEAPONS) - 1))
            self.item_x = side * (_F["SPOTS"] + (_uniform(key, 2) * 2 - 1) * _F["SPOTS_SPREAD"])
            self.item_clock = _F["WEAPON_LIES"]

    def _knock_out(self) -> None:
        places = [me.x for me in self.fighters]
        for slot, me in enumerate(self.fighters):
            left = abs(me.x) > _F["BLAST_X"] or me.y < _F["BLAST_BELOW"] or me.y > _F["BLAST_ABOVE"]
            me.knocked_out = left and me.out <= 0
            if me.knocked_out:
                there = places[1 - slot]
                side = 1.0 if there < 0 else -1.0 if there > 0 else me.facing
                self.fighters[slot] = Fighter(
                    x=side * _F["RETURN_X"], y=_F["RETURN_Y"], facing=-side, grounded=False,
                    stride=me.stride, jump_wait=me.jump_wait, turn_wait=me.turn_wait,
                    hand_wait=me.hand_wait, dodge_wait=me.dodge_wait, wait=me.wait,
                    out=_F["OUT_FRAMES"], safe=_F["OUT_FRAMES"] + _F["SAFE_FRAMES"],
                    stocks=max(me.stocks - 1, 0.0), dealt=me.dealt, knocked_out=True,
                    equipped=me.equipped, dropped=me.dropped, combo=me.combo,
                )  # fmt: skip

    def _apart(self) -> float:
        one, two = self.fighters
        return 0.0 if self.over else abs(two.x - one.x) + abs(two.y - one.y)

    def _rewards(self, apart: float) -> list[float]:
        rewards = []
        closer = apart - self._apart()
        for slot, me in enumerate(self.fighters):
            other = self.fighters[1 - slot]
            ahead = me.stocks - other.stocks if self.over else 0.0
            result = (ahead > 0) - (ahead < 0)
            fell = float(other.knocked_out) - float(me.knocked_out)
            rewards.append(0.01 * (me.dealt - other.dealt) + fell + 2 * result + 0.02 * closer)
        return rewards

    def observe(self) -> list[list[float]]:
        """What each side sees, two lists of 64."""
        about = [self._about(me, self.fighters[1 - slot]) for slot, me in enumerate(self.fighters)]
        spear, hammer = float(self.item == 1), float(self.item == 2)
        views = []
        for slot, me in enumerate(self.fighters):
            other, way = self.fighters[1 - slot], me.facing
            lies = spear + hammer
            gap, rise = (other.x - me.x) * way, other.y - me.y
            view = [
                me.x * way / 12, me.y / 12, me.vx * way / 20, me.vy / 20, *about[slot],
                (self.item_x - me.x) * lies * way / 7, spear, hammer,
                (self.platform[0] - me.x) * way / 7, (self.platform[1] - me.y) / 3,
                1 - self.frame / t.MAX_FRAMES,
                other.x * way / 12, other.y / 12, other.vx * way / 20, other.vy / 20,
                *about[1 - slot], (self.item_x - other.x) * lies * way / 7,
                gap / 16, rise / 10, gap / 3, rise / 3, other.chain / 5,
            ]  # fmt: skip
            views.append([min(max(number, -1.0), 1.0) for number in view])
        return views

    def _about(self, me: Fighter, other: Fighter) -> list[float]:
        startup, active, recovery, *kind = _LOOKS[me.move]
        to_active = startup - me.move_clock
        to_recovery = to_active + active
        starting, striking = to_active > 0, to_active <= 0 < to_recovery
        along = me.x * me.facing
        return [
            1.0 if (other.x - me.x) * me.facing >= 0 else -1.0, float(me.grounded), me.jumps / 2,
            me.recoveries, me.jump_wait / 8, me.dodge_wait / 60, max(me.stun, me.wait, me.out) / 45,
            max(me.safe, me.dodge) / 30, to_active / 20 if starting else 0.0,
            to_recovery / 20 if striking else 0.0,
            0.0 if starting or striking else max(to_recovery + recovery, 0.0) / 20, *kind,
            me.damage / 150, me.stocks / 3, float(me.weapon == 1), float(me.weapon == 2),
            _ground(along) / 5, _ground(-along) / 5,
        ]  # fmt: skip


def _ground(along: float) -> float:
    if along < -7:
        return along + 7
    if along <= -2:
        return -2 - along
    if along < 2:
        return along - 2
    return 7 - along if along <= 7 else -5.0


def from_state(state: Any, index: int) -> PlainBrawl:
    """The same match as one of the batch of an array state."""
    shared = ("frame", "key", "tilt", "phase", "item", "item_x", "item_clock")
    match = PlainBrawl(**{name: getattr(state, name)[index].item() for name in shared})
    match.platform = (state.platform[0, index].item(), state.platform[1, index].item())
    match.fighters = [
        Fighter(
            **{name: getattr(state, name)[slot, index].item() for name in Fighter.__annotations__}
        )
        for slot in range(2)
    ]
    return match
