"""``python -m bilogp``: the doctor, and the programs of the package."""

from __future__ import annotations

import argparse
import sys


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bilogp", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    doctor = commands.add_parser("doctor", help="what works here, what does not, and how to repair it")
    doctor.add_argument("--json", action="store_true", help="for programs")
    commands.add_parser("info", help="version, back ends, threads")
    chosen = parser.parse_args(arguments)
    if chosen.command == "info":
        from rich.console import Console

        from . import runtime_info

        Console().print(runtime_info())
        return 0
    from .doctor import run

    return run(chosen.json)


if __name__ == "__main__":
    sys.exit(main())
