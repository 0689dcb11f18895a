"""Who leases a case, and how to tell that its process has ended.

An owner's name says where its process runs and which one it is: `host:boot:namespace/pid:start:mark`. A process of the
same boot and the same namespace of process ids can be looked up; of any other nobody knows but by time.
"""

from __future__ import annotations

import os
import re
import socket
import uuid
from contextlib import suppress
from functools import cache
from pathlib import Path

_PROC = Path("/proc")
# A number with more digits is no process's, and none that a system could be asked about.
_NAME = re.compile(r"[^/]*:([^/:]*):([^/:]*)/([0-9]{1,9}):([0-9]*):[0-9a-f]+")


def new_owner(process: int | None = None) -> str:
    """Return a name that nobody else has, under which a process leases cases; None: this process."""
    host = re.sub(r"[^\w.-]", "_", socket.gethostname())
    pid, start = process or os.getpid(), ""
    with suppress(OSError):
        start = _start(pid) or ""
    return f"{host}:{_boot()}:{_namespace()}/{pid}:{start}:{uuid.uuid4().hex}"


def is_dead(owner: str) -> bool:
    """Tell whether the process of `owner` has certainly ended; False where it lives, or nobody here can know."""
    match = _NAME.fullmatch(owner)
    if match is None or not match[1] or (match[1], match[2]) != (_boot(), _namespace()):
        return False
    pid, start = int(match[3]), match[4]
    try:
        return _start(pid) != start
    except OSError:
        return not _answers(pid)


def process_of(owner: str) -> tuple[str, str]:
    """Return on which host `owner` runs, and the number of its process there, for a person to read."""
    place, _, process = owner.rpartition("/")
    return place.partition(":")[0], process.partition(":")[0]


@cache
def _boot() -> str:
    """Return what tells this start of this machine from every other one; empty where nothing does."""
    with suppress(OSError):
        return (_PROC / "sys/kernel/random/boot_id").read_text("ascii").strip()
    return ""


@cache
def _namespace() -> str:
    """Return what tells apart processes of one machine that have the same number."""
    with suppress(OSError):
        return re.sub(r"[^0-9]", "", os.readlink(_PROC / "self/ns/pid"))
    return ""


def _start(pid: int) -> str | None:
    """Return when process `pid` began, in ticks since the start of the machine; None where it has ended.

    Raises:
        OSError: this system does not tell.
    """
    status = (_PROC / str(pid) / "stat").read_text("utf-8", "replace")
    # The name of the program, in parentheses, may hold anything; the state follows it, and the start 19 fields later.
    state, *fields = status.rpartition(")")[2].split()
    return None if state in ("Z", "X") else fields[18]


def _answers(pid: int) -> bool:
    """Tell whether there is a process of this number, whoever it is."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
