"""bilogp-score and bilogp-warmcache as commands: the programs that the package carries, in this process's place."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn


def path_of(name: str) -> str:
    return str(Path(__file__).with_name("bin") / name)


def _become(name: str) -> NoReturn:
    os.execv(path_of(name), [name, *sys.argv[1:]])


def score() -> NoReturn:
    _become("bilogp-score")


def warmcache() -> NoReturn:
    _become("bilogp-warmcache")
