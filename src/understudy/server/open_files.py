"""How many files and sockets this process may have open: as many as it asks for, where it may."""

from __future__ import annotations

import contextlib
import sys

if sys.platform != "win32":

    def allow(wanted: int) -> int:
        """Raise the limit to so many if it is lower and that is allowed; how many there may be."""
        import resource  # of POSIX alone

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft == resource.RLIM_INFINITY or soft >= wanted:
            return wanted
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(OSError, ValueError):  # macOS has another limit beneath `hard`
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        return min(wanted, resource.getrlimit(resource.RLIMIT_NOFILE)[0])

else:

    def allow(wanted: int) -> int:
        """As many as anybody wants: Windows does not count sockets."""
        return wanted
