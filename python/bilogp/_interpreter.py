"""Loads the extension, and refuses the interpreters that it does not serve in sentences of its own."""

from __future__ import annotations

import sys

# Of builds without a GIL the flags have a "t", also where the GIL was switched on again.
if "t" in sys.abiflags:
    raise ImportError(
        f"bilogp does not serve free-threaded builds such as this Python {sys.version.split()[0]}; "
        "use the build with a GIL, where bilogp releases it during work"
    )

try:
    from . import _core as core
except ImportError as error:
    if "subinterpreter" not in str(error):  # as newer interpreters refuse by themselves
        raise
    raise ImportError(
        "bilogp cannot be imported in a sub-interpreter; import it in the main interpreter, or use processes"
    ) from None

__all__ = ["core"]
