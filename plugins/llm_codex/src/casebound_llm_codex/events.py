"""What the event lines of `codex exec --json` say. Pure; no I/O, no clock, no key.

Rules:
- An answer counts only where the turn completed and the program ended with status 0; the last message is the answer.
- An item of type `error` is a warning, and so is a top-level `error`; only `turn.failed` is final.
- Everything that is neither a message, nor reasoning, nor a warning is a tool that the model used, whatever its name:
  a kind of item that is not known yet must not pass unseen. A tool that was asked for and not offered leaves no event;
  Codex mentions it on standard error, of which the end is kept.
- A refusal and an empty answer look the same: no message. Both are empty text.
- Usage is what the turn reports, summed by Codex over its requests; a failed turn reports none. There is no cost.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from casebound.contracts.model_call import FinishReason, ModelReply, NativeReply, Usage
from casebound.llm.http.envelope import count_of, mapping, text_of
from casebound.strict_json import JsonError, parse_json

from casebound_llm_codex.failure import ended_without_a_turn, finish_of, turn_failed, unreadable

_NO_TOOLS = frozenset({"agent_message", "error", "reasoning"})
_UNOFFERED = re.compile(r"unsupported (?:custom tool )?call: (?P<name>[\w.-]{1,64})")

Event = Mapping[str, object]


def read_events(native: NativeReply) -> ModelReply:
    """Return what the events say.

    Raises:
        ProviderError: the turn failed, never ended, or the lines are not events at all.
    """
    events = _events(native)
    message = next((_message(event) for event in events if event.get("type") == "turn.failed"), None)
    if message is not None:
        cut = finish_of(message)
        if cut is None:
            raise turn_failed(message)
        return _reply(native, events, *cut)
    if native.headers.get("exit-status") != "0" or not any(event.get("type") == "turn.completed" for event in events):
        raise ended_without_a_turn(native)
    return _reply(native, events, "stop", None)


def _events(native: NativeReply) -> Sequence[Event]:
    events = []
    for number, line in enumerate(native.body.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            event = parse_json(line)
        except JsonError as exc:
            raise unreadable(f"line {number} of standard output is no event: {exc.reason}") from None
        if not isinstance(event, dict):
            raise unreadable(f"line {number} of standard output is JSON, but no event")
        events.append(event)
    return events


def _message(event: Event) -> str:
    return text_of(mapping(event.get("error")).get("message")) or "a failure without a word"


def _reply(native: NativeReply, events: Sequence[Event], finish: FinishReason, word: str | None) -> ModelReply:
    items = [mapping(event.get("item")) for event in events if str(event.get("type")).startswith("item.")]
    tools = _tools(items, native.headers.get("stderr", ""))
    return ModelReply(
        text=_last_text(events),
        finish_reason="tool_calls" if tools and finish == "stop" else finish,
        native_finish_reason=word,
        usage=_usage(events),
        tools=tools,
    )


def _last_text(events: Sequence[Event]) -> str:
    completed = [mapping(event.get("item")) for event in events if event.get("type") == "item.completed"]
    texts = [item.get("text") for item in completed if item.get("type") == "agent_message"]
    return text_of(texts[-1]) or "" if texts else ""


def _tools(items: Sequence[Event], chatter: str) -> tuple[str, ...]:
    """Return each tool once, in the order of its first appearance; an item is told when it starts and when it ends."""
    used = [_tool_name(item) for item in items if text_of(item.get("type")) not in _NO_TOOLS]
    return tuple(dict.fromkeys([*used, *(found["name"] for found in _UNOFFERED.finditer(chatter))]))


def _tool_name(item: Event) -> str:
    names = (text_of(item.get(key)) for key in ("type", "server", "tool"))
    return ".".join(name for name in names if name) or "unnamed"


def _usage(events: Sequence[Event]) -> Usage:
    counts = mapping(next((event.get("usage") for event in events if event.get("type") == "turn.completed"), None))
    return Usage(
        input_tokens=count_of(counts.get("input_tokens")),
        output_tokens=count_of(counts.get("output_tokens")),
        cached_input_tokens=count_of(counts.get("cached_input_tokens")),
        reasoning_tokens=count_of(counts.get("reasoning_output_tokens")),
    )
