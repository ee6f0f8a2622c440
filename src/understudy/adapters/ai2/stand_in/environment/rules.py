"""The rules of the stand-in: one match, in plain Python numbers.

Both players act, move and strike at the same time, so that neither slot has an advantage. Chance
comes from Python's global `random`, as in the tournament.
"""

from __future__ import annotations

import random

from . import moves as m

W, A, S, D, SPACE, H, L, J, K, G = range(10)
"""Positions of the keys in an action."""


class Player:
    """One fighter. `x`, `y` is the middle of its body."""

    def __init__(self, x: float, facing: float) -> None:
        self.stocks = m.STOCKS
        self.damage_taken_total = 0.0
        self.damage_done = 0.0
        self.weapon = m.FISTS
        self.enter(x, facing)
        self.out = self.safe = 0

    def enter(self, x: float, facing: float) -> None:
        """Enter the stage: at the start, and after a knockout."""
        self.x, self.y, self.vx, self.vy = x, m.SPAWN_Y, 0.0, 0.0
        self.facing = facing
        self.grounded = self.carried = False
        self.damage = 0.0
        self.jumps, self.recoveries = m.AIR_JUMPS, 1
        self.walked = self.jump_wait = self.turn = self.hand_wait = 0
        self.dodge_wait = self.dodge = self.dash = 0
        self.backwards = False
        self.stun = self.chain = 0.0
        self.move = m.NO_MOVE
        self.move_frame = 0
        self.struck = False
        self.taunt = 0
        self.weapon = m.FISTS

    @property
    def idle(self) -> bool:
        """Whether it may begin an action."""
        return not (self.stun > 0 or self.out or self.move or self.dodge or self.taunt or self.turn)

    def state(self) -> int:
        """The number of its state."""
        if self.out:
            return m.KNOCKED_OUT
        if self.stun > 0:
            return m.STUNNED
        if self.move:
            return m.ATTACKING
        if self.dodge:
            return m.DODGING
        if self.taunt:
            return m.TAUNTING
        if self.dash:
            return m.BACKDASHING if self.backwards else m.DASHING
        if self.turn:
            return m.TURNING if self.grounded else m.AIR_TURNING
        if not self.grounded:
            return m.IN_AIR
        if self.walked >= m.RUN_AFTER:
            return m.SPRINTING
        return m.WALKING if self.walked else m.STANDING

    def pass_time(self) -> None:
        """One frame less of everything that is timed."""
        if self.jump_wait:
            self.jump_wait -= 1
        if self.turn:
            self.turn -= 1
        if self.hand_wait:
            self.hand_wait -= 1
        if self.dodge_wait:
            self.dodge_wait -= 1
        if self.dodge:
            self.dodge -= 1
        if self.dash:
            self.dash -= 1
        if self.taunt:
            self.taunt -= 1
        if self.safe:
            self.safe -= 1
        if self.stun > 0:
            self.stun = max(self.stun - 1.0, 0.0)


class Platform:
    """The small platform that moves between two places; bodies land on it from above."""

    def __init__(self) -> None:
        self._at = 0.0
        self._way = 1.0
        self.x, self.y = m.PLATFORM_FROM
        self.vx = self.vy = 0.0

    def physics_process(self, dt: float) -> None:
        """Move for `dt` seconds."""
        before = self.x, self.y
        self._at += self._way * dt * m.FRAMES_PER_S / m.PLATFORM_FRAMES
        if not 0.0 <= self._at <= 1.0:
            self._way = -self._way
            self._at = min(max(self._at, 0.0), 1.0)
        (x0, y0), (x1, y1) = m.PLATFORM_FROM, m.PLATFORM_TO
        self.x, self.y = x0 + (x1 - x0) * self._at, y0 + (y1 - y0) * self._at
        self.vx, self.vy = (self.x - before[0]) / dt, (self.y - before[1]) / dt


class Match:
    """Two players, the platform and the weapon that lies on the stage, if any."""

    def __init__(self) -> None:
        side = 1.0 if random.random() < 0.5 else -1.0
        self.players = [Player(side * m.SPAWN_X, -side), Player(-side * m.SPAWN_X, side)]
        self.platform = Platform()
        self.item, self.item_x, self.item_y = 0, 0.0, 0.0
        self.item_frames = random.randint(*m.WEAPON_WAIT) // 4
        self.frames = 0

    def step(self, keys: tuple[list[bool], list[bool]]) -> list[int]:
        """One frame; the keys that each player holds. Slots of players who were knocked out."""
        one, two = self.players
        _begin(one, keys[0])
        _begin(two, keys[1])
        speeds = _steer(one, two, keys[0]), _steer(two, one, keys[1])
        (one.vx, one.vy), (two.vx, two.vy) = speeds
        before = self.platform.x, self.platform.y
        self.platform.physics_process(m.DT)
        self._travel(one, keys[0], before)
        self._travel(two, keys[1], before)
        self._strike()
        self._take_weapons(keys)
        one.pass_time()
        two.pass_time()
        self.frames += 1
        return self._knock_out()

    def _travel(self, me: Player, keys: list[bool], before: tuple[float, float]) -> None:
        """Move, and stop at walls, tops of blocks and the platform."""
        if me.out:
            return
        platform = self.platform
        x = me.x + me.vx * m.DT
        if me.carried:
            x += platform.x - before[0]
        y = me.y + me.vy * m.DT
        feet_before, feet = me.y + m.HALF_HEIGHT, y + m.HALF_HEIGHT
        grounded = False
        for left, right, top in m.BLOCKS:
            if left - m.HALF_WIDTH < x < right + m.HALF_WIDTH and feet >= top:
                if feet_before <= top + m.STEP_UP and me.vy >= 0.0:
                    grounded, y = True, top - m.HALF_HEIGHT
                elif feet > top + m.STEP_UP:
                    x = left - m.HALF_WIDTH if x < (left + right) / 2 else right + m.HALF_WIDTH
                    me.vx = 0.0
        carried = False
        if not grounded and abs(x - platform.x) < m.PLATFORM_HALF + m.HALF_WIDTH:
            drops = keys[S] and not (keys[J] or keys[K])
            lands = feet_before <= before[1] + 0.05 and feet >= platform.y and me.vy >= 0.0
            if not drops and (lands or me.carried):
                grounded = carried = True
                y = platform.y - m.HALF_HEIGHT
        me.x, me.y, me.grounded, me.carried = x, y, grounded, carried
        if grounded:
            me.vy, me.jumps, me.recoveries = 0.0, m.AIR_JUMPS, 1

    def _strike(self) -> None:
        """Hits of both players, from what both did before any of them."""
        one, two = self.players
        if not (one.move or two.move):
            one.chain = one.chain if one.stun > 0 else 0.0
            two.chain = two.chain if two.stun > 0 else 0.0
            return
        first, second = _hits(one, two), _hits(two, one)
        moves = [m.MOVES[me.weapon][me.move] if me.move else None for me in self.players]
        ways = one.facing, two.facing
        for me, hit, by, way in ((one, second, moves[1], ways[1]), (two, first, moves[0], ways[0])):
            if me.stun <= 0:
                me.chain = 0.0
            if hit and by is not None:
                _hurt(me, by, way)
        for me, move, hit, hurt in (
            (one, moves[0], first, second),
            (two, moves[1], second, first),
        ):
            if move is None:
                continue
            if hit:
                me.struck = True
                me.damage_done += move.damage
            me.move_frame += 1
            if hurt or me.move_frame >= move.frames:
                me.move, me.move_frame, me.struck = m.NO_MOVE, 0, False

    def _take_weapons(self, keys: tuple[list[bool], list[bool]]) -> None:
        taken = False
        for me, held in zip(self.players, keys):  # noqa: B905 - Python 3.10 runs this too
            if not held[H] or me.hand_wait or not me.idle:
                continue
            near = abs(me.x - self.item_x) < m.HAND_REACH_X
            if self.item and near and abs(me.y - self.item_y) < m.HAND_REACH_Y:
                me.weapon, taken = self.item, True
            elif me.weapon:
                me.weapon = m.FISTS
            else:
                continue
            me.hand_wait = m.HAND_WAIT
        self.item_frames = 0 if taken else self.item_frames - 1
        if self.item_frames > 0:
            return
        if self.item:
            self.item, self.item_x, self.item_y = 0, 0.0, 0.0
            self.item_frames = random.randint(*m.WEAPON_WAIT)
        else:
            left = random.random() < 0.5
            self.item = random.choice((m.SPEAR, m.HAMMER))
            self.item_x = random.uniform(*m.WEAPON_X) * (-1.0 if left else 1.0)
            self.item_y = m.BLOCKS[0 if left else 1][2] - m.HALF_HEIGHT
            self.item_frames = m.WEAPON_LIES

    def _knock_out(self) -> list[int]:
        one, two = self.players
        left = []
        for slot, me in enumerate(self.players):
            if me.out:
                me.out -= 1
                if not me.out:
                    me.safe = m.SAFE_FRAMES
            elif abs(me.x) > m.BLAST_X or abs(me.y) > m.BLAST_Y:
                left.append(slot)
        places = one.x, two.x
        for slot in left:
            me, there = self.players[slot], places[1 - slot]
            side = 1.0 if there < 0 else -1.0
            me.stocks -= 1
            me.enter(side * m.SPAWN_X, -side)
            me.out = m.OUT_FRAMES
        return left


def _begin(me: Player, keys: list[bool]) -> None:
    """Begin what the keys ask for, where the player is free to."""
    if not me.idle:
        return
    way = float(keys[D]) - float(keys[A])
    if keys[L] and not me.dodge_wait and not me.dash:
        if me.grounded and way:
            me.backwards = way != me.facing
            me.vx = way * (m.BACKDASH_SPEED if me.backwards else m.DASH_SPEED)
            me.dash = m.BACKDASH_FRAMES if me.backwards else m.DASH_FRAMES
            me.dodge_wait = m.DASH_WAIT
        else:
            me.dodge = m.DODGE_FRAMES
            me.dodge_wait = m.DODGE_WAIT if me.grounded else m.AIR_DODGE_WAIT
        return
    if way and way != me.facing and not me.dash:
        me.facing, me.turn = way, m.TURN_FRAMES
    if keys[SPACE] and not me.jump_wait and (me.grounded or me.jumps):
        if not me.grounded:
            me.jumps -= 1
        me.vy, me.jump_wait = -m.JUMP_SPEED, m.JUMP_WAIT
        me.grounded = me.carried = False
    elif keys[J] or keys[K]:
        _begin_move(me, keys, aside=bool(way))
    elif keys[G] and me.grounded:
        me.taunt = m.TAUNT_FRAMES


def _begin_move(me: Player, keys: list[bool], *, aside: bool) -> None:
    heavy, down = keys[K], keys[S]
    if heavy and keys[W]:
        if not me.recoveries:
            return
        me.recoveries -= 1
        me.grounded = me.carried = False
        me.move = m.RECOVERY
    elif not me.grounded:
        me.move = m.GROUND_POUND if heavy and down else (
            m.D_AIR if down else m.S_AIR if aside else m.N_AIR)  # fmt: skip
    elif heavy:
        me.move = m.D_SIG if down else m.S_SIG if aside else m.N_SIG
    else:
        me.move = m.D_LIGHT if down else m.S_LIGHT if aside else m.N_LIGHT
    me.move_frame, me.struck, me.turn = 0, False, 0
    move = m.MOVES[me.weapon][me.move]
    if move.push_x:
        me.vx = me.facing * move.push_x
    if move.push_up:
        me.vy = -move.push_up


def _steer(me: Player, other: Player, keys: list[bool]) -> tuple[float, float]:
    """The speed after this frame's walking, friction, contact and gravity."""
    if me.out:
        return 0.0, 0.0
    stunned = me.stun > 0
    free = not (stunned or me.dodge or me.taunt or (me.move and me.grounded))
    way = float(keys[D]) - float(keys[A]) if free else 0.0
    me.walked = me.walked + 1 if way and me.grounded else 0
    if me.dash:
        vx = me.vx
        me.walked = m.RUN_AFTER
    else:
        if me.grounded:
            pace = m.RUN if me.walked >= m.RUN_AFTER else m.WALK
            grip = m.STUN_GRIP if stunned else m.SWING_GRIP if me.move else m.GRIP
        else:
            pace, grip = m.AIR, m.STUN_AIR_GRIP if stunned else m.AIR_GRIP
        vx = me.vx + max(min(way * pace - me.vx, grip), -grip)
    gap = other.x - me.x
    touch = gap * vx > 0 and abs(gap) < m.BODY_GAP and abs(other.y - me.y) < m.BODY_RISE
    if touch and not (stunned or me.dodge or me.safe or other.dodge or other.safe or other.out):
        vx = 0.0
    fast = keys[S] and not (stunned or me.grounded)
    fall = m.GRAVITY + (m.FAST_FALL if fast else 0.0)
    most = m.FAST_FALL_MAX if fast or me.vy > m.FALL_MAX else m.FALL_MAX
    return vx, min(me.vy + fall, most)


def _hits(me: Player, other: Player) -> bool:
    if not me.move or me.struck or other.dodge or other.safe or other.out:
        return False
    move = m.MOVES[me.weapon][me.move]
    return (
        move.startup <= me.move_frame < move.startup + move.active
        and abs((other.x - me.x) * me.facing - move.ahead) < move.half_width + m.HALF_WIDTH
        and abs(other.y - me.y - move.below) < move.half_height + m.HALF_HEIGHT
    )


def _hurt(me: Player, by: m.Move, way: float) -> None:
    """Damage, knockback and stun; `way` is the direction that the other player faces."""
    me.damage += by.damage
    me.damage_taken_total += by.damage
    force = by.fixed + by.variable * (me.damage / 70.0 + me.damage**2 / 12000.0)
    speed = force * m.FORCE_SPEED
    me.vx, me.vy = way * by.away * speed, -by.up * speed
    relief = me.chain * m.COMBO_RELIEF
    me.stun = max(by.stun + speed * m.STUN_PER_SPEED - relief, m.STUN_LEAST)
    me.chain += 1.0
    me.dash = me.taunt = me.turn = 0
    if by.up > 0:
        me.grounded = me.carried = False
