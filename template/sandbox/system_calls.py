"""A filter of the system calls of a helper, where the system has one (seccomp(2)); Linux on x86-64 and ARM64.

A helper runs as the daemon's user.  It is forked with all that it needs loaded, and with one connection.  So
it computes, takes memory, and talks on what is open; a file, another connection, a program, a process, or a
signal to another one it gets from nobody.  A call that is not in the list fails by EPERM.

The program is that of classic BPF: https://www.kernel.org/doc/html/latest/userspace-api/seccomp_filter.html
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class _Machine:
    """The numbers of an architecture.

    :ivar audit: its name for the kernel.
    :ivar allowed: the calls without a condition.
    """

    audit: int
    allowed: Mapping[str, int]
    ioctl: int


_X86_64 = _Machine(
    0xC000003E,
    {
        **{"read": 0, "write": 1, "close": 3, "fstat": 5, "poll": 7, "lseek": 8, "mmap": 9, "mprotect": 10},
        **{"munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14, "rt_sigreturn": 15},
        **{"pread64": 17, "select": 23, "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35},
        **{"getitimer": 36, "setitimer": 38, "getpid": 39, "sendto": 44, "recvfrom": 45, "exit": 60},
        **{"gettimeofday": 96, "getrusage": 98, "sigaltstack": 131, "gettid": 186, "time": 201, "futex": 202},
        **{"restart_syscall": 219, "clock_gettime": 228, "clock_nanosleep": 230, "exit_group": 231},
        **{"pselect6": 270, "ppoll": 271, "getrandom": 318},
    },
    ioctl=16,
)
_AARCH64 = _Machine(
    0xC00000B7,
    {
        **{"close": 57, "lseek": 62, "read": 63, "write": 64, "pread64": 67, "pselect6": 72, "ppoll": 73},
        **{"fstat": 80, "exit": 93, "exit_group": 94, "futex": 98, "nanosleep": 101, "getitimer": 102},
        **{"setitimer": 103, "clock_gettime": 113, "clock_nanosleep": 115, "sched_yield": 124},
        **{"restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134, "rt_sigprocmask": 135},
        **{"rt_sigreturn": 139, "getrusage": 165, "gettimeofday": 169, "getpid": 172, "gettid": 178},
        **{"sendto": 206, "recvfrom": 207, "brk": 214, "munmap": 215, "mremap": 216, "mmap": 222},
        **{"mprotect": 226, "madvise": 233, "getrandom": 278},
    },
    ioctl=29,
)
_MACHINES = {"x86_64": _X86_64, "aarch64": _AARCH64}

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_NUMBER, _ARCHITECTURE, _SECOND_ARGUMENT = 0, 4, 24
"""Offsets in struct seccomp_data."""
_FIONBIO = 0x5421
"""The only ioctl: Python gives sockets their timeouts by it."""
_PR_SET_SECCOMP, _FILTER = 22, 2
_PR_SET_NO_NEW_PRIVS = 38
_LONGEST = 1000
"""Bytes of the reason why there is no filter."""


class _Program(ctypes.Structure):
    """A struct sock_fprog."""

    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def program(machine: str) -> bytes | None:
    """Return the filter for a machine, as of platform.machine(); None: there is none."""
    numbers = _MACHINES.get(machine)
    if numbers is None:
        return None
    calls = sorted(numbers.allowed.values())
    # After the list: three lines for ioctl, one that refuses, one that allows.
    lines = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, numbers.audit),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER),
        *((_EQUAL, len(calls) - index + 3, 0, call) for index, call in enumerate(calls)),
        (_EQUAL, 0, 2, numbers.ioctl),
        (_LOAD, 0, 0, _SECOND_ARGUMENT),
        (_EQUAL, 1, 0, _FIONBIO),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


def restrict() -> str | None:
    """Filter the calls of this process and of all that it starts, for good; return why that is not possible.

    The process must have set PR_SET_NO_NEW_PRIVS before.
    """
    machine = platform.machine()
    code = program(machine)
    if code is None:
        return f"there is no filter for {platform.system()} on {machine}"
    instructions = ctypes.create_string_buffer(code, len(code))
    filtered = _Program(len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_SECCOMP, _FILTER, ctypes.byref(filtered), 0, 0) != 0:
        return f"the system refuses it: {os.strerror(ctypes.get_errno())}"
    return None


def gain_nothing() -> None:
    """Refuse for good the privileges of programs with the set-user-ID bit or file capabilities."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def why_unfiltered() -> str:
    """Return why the system does not filter the calls of helpers; "": it does, in a process that tries it."""
    reader, writer = os.pipe()
    if (pid := os.fork()) == 0:
        try:
            gain_nothing()
            os.write(writer, (restrict() or "").encode()[:_LONGEST])
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        text = answer.read(_LONGEST).decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    return text or (f"the process that tried it ended by {status}" if status else "")
