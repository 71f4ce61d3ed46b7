"""A progress bar for a kernel that takes long to compile, in notebooks and terminals.

Nothing is shown for the first half second, and nothing at all where standard error is no terminal and no notebook.
``BILOGP_PROGRESS=0`` turns it off.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable
from typing import Any

DELAY = 0.5


class _Watch:
    """Shows a bar when it is not closed within DELAY. One thread, which mostly only sleeps."""

    def __init__(self, kernel: str) -> None:
        self._kernel = kernel
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, name="bilogp-progress", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._done.set()
        self._thread.join()

    def _show(self) -> None:
        if self._done.wait(DELAY):
            return
        from tqdm.auto import tqdm

        layout = "{desc} {elapsed}"
        with tqdm(desc=f"compiling {self._kernel}", bar_format=layout, leave=False, file=sys.stderr) as bar:
            while not self._done.wait(0.1):
                bar.refresh()


class _NoWatch:
    def close(self) -> None:
        pass


def is_wanted() -> bool:
    if os.environ.get("BILOGP_PROGRESS") == "0":
        return False
    return "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())


def watch(kernel: str) -> _Watch | _NoWatch:
    """Watches the call that needs `kernel` for the first time, until it is closed."""
    return _Watch(kernel) if is_wanted() else _NoWatch()


def bar(items: list[Any], wanted: bool | None) -> Iterable[Any]:
    """`items`, under a bar that appears after DELAY; None: where it can be seen."""
    if len(items) == 0 or not (is_wanted() if wanted is None else wanted):
        return items
    from tqdm.auto import tqdm

    return tqdm(items, desc="compiling kernels", delay=DELAY, leave=False)  # type: ignore[no-any-return]
