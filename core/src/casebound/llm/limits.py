"""How many calls one provider gets at a time, and how many requests and tokens a minute.

Rules:
- Whoever asks first is served first; nobody overtakes, not even with a smaller call.
- A minute is a rolling one: in no window of 60 s more requests begin, or more tokens are asked for, than the limits
  say, however the window lies. `WINDOW_S` is a little longer than a minute: what leaves here at the two ends of one may
  arrive closer together.
- A call counts with all the tokens that it may take, until its reply says how many it took; one that never says so
  keeps its worst case. One that may take more than a whole minute's tokens is not refused, for that is an estimate: it
  waits until it is alone in its minute.
- A call is prepared before it is sent: its request reaches the disk. So that no place stays empty meanwhile, a few more
  calls have a turn than may be in flight, and depart as places become free, in the order in which they are ready. They
  are few, because a process that is killed leaves requests behind that nobody sent, and because they are sent whatever
  a server or a person says meanwhile; and there are none where a minute is limited, because its window begins with the
  turn.
- Where a server asks for a pause, everybody who would ask that model of it waits, and only they: a fallback to another
  model goes on, and who is impatient, because somebody else would be asked at once, asks. After the pause one call goes
  first, alone, and the others when it ended without another wish: a server that is overloaded hears one call a pause.

All of it belongs into one event loop's thread. Nothing here sleeps but one alarm, and only while somebody waits.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from casebound.clock import Clock
from casebound.settings_model import Limits

WINDOW_S = 60.5
MOST_PAUSE_S = 600.0
_SHORTEST_SLEEP_S = 0.01  # an alarm that rang a rounding error too early does not ring without end

_AHEAD = 4  # of so many calls that may be in flight, one more has a turn

_Waiting: TypeAlias = "tuple[int, Turn, asyncio.Future[None]]"  # a number that grows, so that lanes can be compared


class Turn:
    """Leave of the limiter for one call, from before it is sent until its outcome is known."""

    __slots__ = ("_ended", "_limiter", "_over", "begun", "flying", "lane", "tokens")

    def __init__(self, limiter: Limiter, lane: Lane, tokens: int) -> None:
        self.lane = lane
        self.tokens = tokens
        self.begun = 0.0
        self.flying = False
        self._ended = False
        self._over = False
        self._limiter = limiter

    async def depart(self) -> None:
        """Wait until the call may be sent, now that it is prepared."""
        await self._limiter.depart(self)

    def over(self) -> None:
        """The call has ended, or is not made: another may be in flight. May be said again."""
        if not self._over:
            self._over = True
            self._limiter.land(self)

    def used(self, tokens: int) -> None:
        """The call took so many tokens."""
        self._limiter.correct(self, tokens)

    def pause(self, seconds: float) -> None:
        """The server asks for a pause: no call of this model begins so long, at most `MOST_PAUSE_S`; then one alone."""
        self._limiter.pause(self.lane, seconds)

    def give_back(self) -> None:
        """The call is not made: its tokens are free again; it still was one of the requests of its minute."""
        self.used(0)
        self.end()

    def end(self) -> None:
        """Nothing more will be told. May be said again."""
        self.over()
        if not self._ended:
            self._ended = True
            self._limiter.finish(self)


class Lane:
    """Those who ask one model, in their order, and the pause that its server wants.

    Attributes:
        careful: since a pause: one call at a time.
        first: the call that goes alone after a pause.
    """

    __slots__ = ("careful", "first", "paused_until", "queue")

    def __init__(self) -> None:
        self.queue: deque[_Waiting] = deque()
        self.paused_until = 0.0
        self.careful = False
        self.first: Turn | None = None

    def held(self, now: float) -> bool:
        """Whether nobody of it may begin now."""
        return self.careful and (self.first is not None or self.paused_until > now)


class Limiter:
    """The turns of one provider. What is said to be told by a `Turn` is not for others."""

    def __init__(self, limits: Limits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._given = 0  # turns whose calls have not ended
        self._flying = 0  # of those, the ones that were sent
        self._prepared: deque[tuple[Turn, asyncio.Future[None]]] = deque()  # those that wait to be
        in_a_minute = limits.requests_per_minute or limits.tokens_per_minute
        self._most_given = limits.in_flight + (0 if in_a_minute else limits.in_flight // _AHEAD)
        self._requests: deque[float] = deque()  # when those of the last minute began
        self._turns: deque[Turn] = deque()  # those of the last minute, where tokens count
        self._tokens = 0  # of all these turns
        self._patient: dict[str | None, Lane] = {}
        self._impatient = Lane()
        self._arrived = 0
        self._alarm: asyncio.Task[None] | None = None
        self._rings_at = 0.0

    @property
    def counts_tokens(self) -> bool:
        """Whether it matters how many tokens a turn is asked for."""
        return self._limits.tokens_per_minute > 0

    def turn_at_once(self, model: str | None, tokens: int = 0, *, patient: bool = True) -> Turn | None:
        """Return a turn for a call of `model` that takes at most `tokens`; None where it would have to wait.

        What is not `patient` waits for no pause, and causes none.
        """
        now, lane = self._clock.monotonic(), self._lane(model, patient)
        if lane.queue or lane.held(now) or self._next_lane(now) is not None:
            return None
        turn = Turn(self, lane, tokens)
        if self._delay_s(turn, now) != 0:
            return None
        self._begin(turn, now)
        return turn

    async def turn(self, model: str | None, tokens: int = 0, *, patient: bool = True) -> Turn:
        """Wait for a turn, as `turn_at_once` would give one; cancelled, it leaves nothing behind."""
        lane = self._lane(model, patient)
        turn = Turn(self, lane, tokens)
        leave: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._arrived += 1
        lane.queue.append((self._arrived, turn, leave))
        self._serve()
        try:
            await leave
        except asyncio.CancelledError:
            if leave.done() and not leave.cancelled():
                turn.give_back()
            self._serve()
            raise
        return turn

    # --- what a turn tells ------------------------------------------------------------------------------------------

    async def depart(self, turn: Turn) -> None:
        """Wait until `turn` may be in flight."""
        leave: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._prepared.append((turn, leave))
        self._let_fly()
        await leave

    def land(self, turn: Turn) -> None:
        """One call less is in flight; whoever follows begins after what else is told about this one, such as a wish."""
        self._given -= 1
        self._flying -= turn.flying
        if self._prepared or any(lane.queue for lane in self._lanes()):
            asyncio.get_running_loop().call_soon(self._serve)

    def correct(self, turn: Turn, tokens: int) -> None:
        """The call of `turn` took so many tokens, whatever was thought before."""
        if self.counts_tokens and turn.begun + WINDOW_S > self._clock.monotonic():
            self._tokens += tokens - turn.tokens
            turn.tokens = tokens
            self._serve()

    def pause(self, lane: Lane, seconds: float) -> None:
        """Begin no call of `lane` for a while."""
        if lane is self._impatient:
            return
        lane.paused_until = max(lane.paused_until, self._clock.monotonic() + min(seconds, MOST_PAUSE_S))
        lane.careful = True

    def finish(self, turn: Turn) -> None:
        """The outcome of the call is known: where it went alone, the others follow."""
        lane = turn.lane
        if turn is lane.first:
            lane.first = None
            lane.careful = lane.paused_until > self._clock.monotonic()
            self._serve()

    # --- whose turn it is -------------------------------------------------------------------------------------------

    def _lane(self, model: str | None, patient: bool) -> Lane:
        if not patient:
            return self._impatient
        if model not in self._patient:
            self._patient[model] = Lane()
        return self._patient[model]

    def _lanes(self) -> Iterator[Lane]:
        yield self._impatient
        yield from self._patient.values()

    def _serve(self) -> None:
        """Give turns to those who wait, in their order, as far as it goes; else let the alarm ring when it does."""
        now = self._clock.monotonic()
        self._let_fly()
        while (lane := self._next_lane(now)) is not None:
            _, turn, leave = lane.queue[0]
            delay = self._delay_s(turn, now)
            if delay is None:
                break
            if delay > 0:
                self._ring_in(delay, now)
                break
            lane.queue.popleft()
            self._begin(turn, now)
            leave.set_result(None)
        pauses = [lane.paused_until for lane in self._lanes() if lane.queue and lane.paused_until > now]
        if pauses:
            self._ring_in(min(pauses) - now, now)

    def _let_fly(self) -> None:
        """Send those that are prepared, in their order, as far as places are free."""
        while self._prepared and self._flying < self._limits.in_flight:
            turn, leave = self._prepared.popleft()
            if not leave.done():  # else it does not wait any more
                self._flying += 1
                turn.flying = True
                leave.set_result(None)

    def _next_lane(self, now: float) -> Lane | None:
        """Return the lane of whoever waits longest and is held by no pause, None where there is nobody."""
        first: Lane | None = None
        for lane in self._lanes():
            while lane.queue and lane.queue[0][2].done():  # it does not wait any more
                lane.queue.popleft()
            if lane.queue and not lane.held(now) and (first is None or lane.queue[0][0] < first.queue[0][0]):
                first = lane
        return first

    def _begin(self, turn: Turn, now: float) -> None:
        turn.begun = now
        self._given += 1
        if turn.lane.careful:
            turn.lane.first = turn
        if self._limits.requests_per_minute:
            self._requests.append(now)
        if self.counts_tokens:
            self._turns.append(turn)
            self._tokens += turn.tokens

    def _delay_s(self, turn: Turn, now: float) -> float | None:
        """Return in how many seconds `turn` may begin, if nothing else happens; None: first a call must end."""
        if self._given >= self._most_given:
            return None
        return max(self._requests_delay_s(now), self._tokens_delay_s(turn, now))

    def _requests_delay_s(self, now: float) -> float:
        most, begun = self._limits.requests_per_minute, self._requests
        while begun and begun[0] + WINDOW_S <= now:
            begun.popleft()
        return begun[0] + WINDOW_S - now if most and len(begun) >= most else 0.0

    def _tokens_delay_s(self, turn: Turn, now: float) -> float:
        most, turns = self._limits.tokens_per_minute, self._turns
        while turns and turns[0].begun + WINDOW_S <= now:
            self._tokens -= turns.popleft().tokens
        if not most:
            return 0.0
        free, delay = most - self._tokens, 0.0
        needed = min(turn.tokens, most)
        for other in turns:
            if free >= needed:
                break
            free += other.tokens
            delay = other.begun + WINDOW_S - now
        return delay

    def _ring_in(self, delay: float, now: float) -> None:
        """Serve again in `delay` seconds; an alarm that is set for an earlier moment rings then, and is set anew."""
        if self._alarm is not None and not self._alarm.done():
            if self._rings_at <= now + delay:
                return
            self._alarm.cancel()
        self._rings_at = now + delay
        self._alarm = asyncio.get_running_loop().create_task(self._ring(max(delay, _SHORTEST_SLEEP_S)))

    async def _ring(self, delay: float) -> None:
        await self._clock.sleep(delay)
        self._alarm = None
        self._serve()
