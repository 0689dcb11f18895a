"""The folder of a live run: every path in it, and the order in which a slot's files come to be.

```
plan.json                 what was confirmed
requests/0001.json        exactly what is sent for a slot
slots/0001/               reservation.json, then native.json and native.bin (or ending.json), record.json, outcome.json
captures.json(l)          once the run is complete, or has stopped for good
```

Files are created once and are for their owner alone. The reservation is exclusive: of two who want a slot, one gets it.
The native bytes come last of the evidence, so that their presence means that the whole reply is there.
"""

from __future__ import annotations

import uuid
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from casebound.bench.files import read_file
from casebound.bench.parsing import parse_written
from casebound.canonical import digest_of
from casebound.clock import format_time
from casebound.contracts.base import Artifact
from casebound.contracts.bench_captures import RECORDS_FILE, CaptureRecord, Captures
from casebound.contracts.bench_live import CallEnding, LivePlan, PlannedSlot, Reservation, SlotOutcome
from casebound.contracts.model_call import ModelRequest, NativeRecord, NativeReply
from casebound.errors import IntegrityError, SettingsError
from casebound.store.package import TMP, Package
from casebound.store.write import sweep, unwritable

CODE = "BENCH_LIVE"
PLAN, CAPTURES = "plan.json", "captures.json"
RESERVATION, NATIVE, NATIVE_BODY = "reservation.json", "native.json", "native.bin"
ENDING, RECORD, OUTCOME = "ending.json", "record.json", "outcome.json"

A = TypeVar("A", bound=Artifact)


def request_path(number: int) -> str:
    """Return where the request of slot `number` stands."""
    return f"requests/{number:04d}.json"


class LiveFolder:
    """Reads and writes the folder of one live run.

    Args:
        root: the folder, which must exist.
        writing: False: nothing can be created.
    """

    def __init__(self, root: Path, *, writing: bool = False) -> None:
        self.root = root
        self.package = Package(root, workspace=root if writing else None, private=True)

    def prepare(self) -> None:
        """Make the folder for temporary files, and remove those that a process that was killed left behind."""
        try:
            with self.package.open(TMP, create=True) as folder:
                sweep(folder)
        except OSError as exc:
            raise unwritable(self.root / TMP, exc) from exc

    # --- what was planned -------------------------------------------------------------------------------------------

    def plan(self) -> LivePlan:
        """Return the plan, whose id is that of its content. Raises `SettingsError` (`BENCH_FILE`, `BENCH_LIVE`)."""
        path = self.root / PLAN
        plan = parse_written(read_file(path), LivePlan, CODE, path)
        if plan.plan_id != plan.derived_id():
            found, expected = plan.plan_id, plan.derived_id()
            raise SettingsError(CODE, path=str(path), pointer="/planId", found=found, expected=expected)
        numbers = [slot.number for slot in plan.slots]
        if numbers != list(range(1, len(numbers) + 1)) or plan.max_calls != len(numbers):
            found = f"slots {numbers}, {plan.max_calls} calls"
            raise SettingsError(CODE, path=str(path), pointer="/slots", found=found, expected="one call a slot, from 1")
        return plan

    def request(self, slot: PlannedSlot) -> ModelRequest:
        """Return what is sent for a slot. Raises `SettingsError` where it is not what the plan binds."""
        path = self.root / request_path(slot.number)
        data = read_file(path)
        if digest_of(data) != slot.request:
            raise SettingsError(CODE, path=str(path), found=digest_of(data), expected=slot.request)
        return parse_written(data, ModelRequest, CODE, path)

    # --- what a slot leaves behind ----------------------------------------------------------------------------------

    async def reserve(self, plan: LivePlan, slot: PlannedSlot, at: datetime) -> bool:
        """Publish the reservation of a slot; False where somebody else has it already.

        Raises:
            UnavailableError: it cannot be written (`WORKSPACE_WRITE`); then nothing may be sent.
        """
        reservation = Reservation(
            plan_id=plan.plan_id,
            case_id=slot.case_id,
            repeat=slot.repeat,
            request=slot.request,
            process=uuid.uuid4().hex,
            at=format_time(at),
        )
        await self.package.flush()  # what the slot before has left: a conflict of that is nobody's reservation
        try:
            self.package.create_artifact(self._path(slot, RESERVATION), reservation)
            await self.package.flush()
        except IntegrityError as exc:
            if exc.code != "STORE_CONFLICT":
                raise
            return False
        return True

    def reservation(self, plan: LivePlan, slot: PlannedSlot) -> Reservation | None:
        """Return the reservation, None where the slot was never called. Raises `SettingsError` (`BENCH_LIVE`)."""
        found = self._load(slot, RESERVATION, Reservation)
        wanted = (plan.plan_id, slot.case_id, slot.repeat, slot.request)
        if found is not None and (found.plan_id, found.case_id, found.repeat, found.request) != wanted:
            path = str(self.root / self._path(slot, RESERVATION))
            raise SettingsError(CODE, path=path, found="a reservation of another slot or plan")
        return found

    def is_reserved(self, plan: LivePlan, slot: PlannedSlot) -> bool:
        """Tell whether a slot was called.

        Raises:
            SettingsError: the reservation is of another slot, or it is gone and other files of the slot stand there
                (`BENCH_LIVE`).
        """
        names = self.names(slot)  # before the reservation, which is the first to come
        if self.reservation(plan, slot) is not None:
            return True
        if names:
            raise self.refusal(slot, names[0], f"a file of a slot without its {RESERVATION}")
        return False

    def called(self, plan: LivePlan) -> tuple[PlannedSlot, ...]:
        """Return the slots that were called, which are the first ones.

        Raises:
            SettingsError: as `is_reserved`; or one is missing before another (`BENCH_LIVE`).
        """
        # The last one first: a slot is reserved after those before it, also while this is read.
        reserved = [slot for slot in reversed(plan.slots) if self.is_reserved(plan, slot)][::-1]
        for place, slot in enumerate(reserved, 1):
            if slot.number != place:
                raise self.refusal(slot, RESERVATION, f"a slot that was called, where slot {place} was not")
        return tuple(reserved)

    def names(self, slot: PlannedSlot) -> list[str]:
        """Return the names of what stands in a slot."""
        return self.package.names(f"slots/{slot.number:04d}")

    def refusal(self, slot: PlannedSlot, name: str, found: str) -> SettingsError:
        """Return the error that a file of a slot does not hold."""
        return SettingsError(CODE, path=str(self.root / self._path(slot, name)), found=found)

    async def keep_native(self, slot: PlannedSlot, native: NativeReply) -> None:
        """Keep what came back: it is on the disk before anything is derived from it."""
        self.package.create_artifact(self._path(slot, NATIVE), native.record)
        self.package.create(self._path(slot, NATIVE_BODY), native.body)
        await self.package.flush()

    def native(self, slot: PlannedSlot) -> NativeReply | None:
        """Return what came back, None where it never reached the disk. Raises `SettingsError` (`BENCH_LIVE`)."""
        body = self.package.read(self._path(slot, NATIVE_BODY))
        if body is None:
            return None
        record = self._load(slot, NATIVE, NativeRecord)
        if record is None or (record.digest, record.size) != (digest_of(body), len(body)):
            path = str(self.root / self._path(slot, NATIVE_BODY))
            raise SettingsError(CODE, path=path, found=f"bytes that {NATIVE} does not bind")
        return NativeReply(record.status, body, record.headers, record.duration_ms)

    async def keep_ending(self, slot: PlannedSlot, ending: CallEnding) -> None:
        """Keep how a call ended that brought no reply."""
        self.package.create_artifact(self._path(slot, ENDING), ending)
        await self.package.flush()

    def ending(self, slot: PlannedSlot) -> CallEnding | None:
        """Return how the call ended, None where nothing says so. Raises `SettingsError` (`BENCH_LIVE`)."""
        return self._load(slot, ENDING, CallEnding)

    def keep_record(self, slot: PlannedSlot, record: CaptureRecord) -> str:
        """Keep what was derived from the evidence; return its digest."""
        return self.package.create_artifact(self._path(slot, RECORD), record)

    def record(self, slot: PlannedSlot) -> CaptureRecord | None:
        """Return what was derived from the evidence, None where nothing was. Raises `SettingsError`."""
        return self._load(slot, RECORD, CaptureRecord)

    def keep_outcome(self, slot: PlannedSlot, outcome: SlotOutcome) -> None:
        """Keep what the machine makes of the record."""
        self.package.create_artifact(self._path(slot, OUTCOME), outcome)

    def outcome(self, slot: PlannedSlot) -> SlotOutcome | None:
        """Return what the machine makes of the record, None where nothing yet, or where the record is missing.

        Raises:
            SettingsError: it is of another record (`BENCH_LIVE`).
        """
        found, record = self._load(slot, OUTCOME, SlotOutcome), self.record(slot)
        if found is None or record is None:
            return None
        if digest_of(record.to_bytes()) != found.record:
            path = str(self.root / self._path(slot, OUTCOME))
            raise SettingsError(CODE, path=path, pointer="/record", found=f"another digest than that of {RECORD}")
        return found

    # --- captures ---------------------------------------------------------------------------------------------------

    def keep_captures(self, lines: bytes, head: Artifact) -> str:
        """Keep the captures, the lines first; return the digest of the head."""
        self.package.create(RECORDS_FILE, lines)
        return self.package.create_artifact(CAPTURES, head)

    def captures(self) -> tuple[bytes | None, Captures | None]:
        """Return lines and head as they stand there, each None where it does not. Raises `SettingsError`."""
        data = self.package.read(CAPTURES)  # before the lines, which come first
        lines = self.package.read(RECORDS_FILE)
        return lines, None if data is None else parse_written(data, Captures, CODE, self.root / CAPTURES)

    def _path(self, slot: PlannedSlot, name: str) -> str:
        return f"slots/{slot.number:04d}/{name}"

    def _load(self, slot: PlannedSlot, name: str, model: type[A]) -> A | None:
        path = self._path(slot, name)
        data = self.package.read(path)
        return None if data is None else parse_written(data, model, CODE, self.root / path)
