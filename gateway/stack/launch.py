"""Become a child of the supervisor, then run its command. A program of its own: it imports the standard library only.

    python -I -S launch.py PARENT_PID SIGNAL IDENTITY COMMAND [ARGUMENT...]

The kernel sends SIGNAL to this process as soon as the parent is gone, even by kill -9. The order matters: Linux forgets
that wish whenever a process changes its user, so the user changes first.

IDENTITY is `same`; `user:NUMBER`, for which the caller must be root; or `namespace`, a user namespace in which the
caller's own user appears as user 1000: Postgres refuses to run as root, and this needs no change of owner anywhere.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
CLONE_NEWUSER = 0x10000000
NAMESPACE_USER = 1000


def become(identity: str) -> None:
    """Take on the identity that the command is to run under."""
    kind, _, number = identity.partition(":")
    if kind == "user":
        os.setgroups([])
        os.setgid(int(number))
        os.setuid(int(number))
    elif kind == "namespace":
        user, group = os.geteuid(), os.getegid()
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(CLONE_NEWUSER) != 0:
            raise OSError(ctypes.get_errno(), "user namespaces are refused here")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{NAMESPACE_USER} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{NAMESPACE_USER} {group} 1")


def main(arguments: list[str]) -> None:
    """Run the command in place of this process."""
    parent, death_signal, identity, *command = arguments
    become(identity)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != int(parent):
        sys.exit("the parent was gone before its child began")
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
