"""Options for autograd and jax, which take numbers: refused here in the sentences that the extension has for them."""

from __future__ import annotations

import operator
from typing import Any

from .errors import InvalidArgument, WrongType


def whole_number(name: str, given: Any, bits: int = 64) -> int:
    number = given
    if type(given) is not int:
        try:
            number = operator.index(given)
        except TypeError:
            raise WrongType(f"{name} is {given!r}; expected a whole number") from None
    if not -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
        raise InvalidArgument(f"{name} is {given!r}; expected a number of at most {bits} bits")
    return int(number)


def truth(name: str, given: Any) -> bool:
    if given is True or given is False:
        return bool(given)
    raise WrongType(f"{name} is {given!r}; expected True or False")


def text(name: str, given: Any) -> str:
    if isinstance(given, str):
        return given
    raise WrongType(f"{name} is {given!r}; expected a name")


def vocab_size(given: Any) -> int:
    """-1: all columns."""
    if given is None:
        return -1
    number = whole_number("vocab_size", given)
    if number < 0:
        raise InvalidArgument(f"vocab_size is {number}; expected a positive number, or None for all columns")
    return number


def validate(given: Any) -> int:
    """As a number of the library."""
    if given is None:
        return 0
    if given is True:
        return 1
    if given is False:
        return 2
    raise WrongType(f"validate is {given!r}; expected None, True or False")


def temperature(given: Any, else_expected: str) -> float:
    """A number's value, for what is no tensor."""
    if type(given) is float:
        return given
    if hasattr(given, "__dlpack__") or not hasattr(given, "__float__"):
        raise WrongType(f"temperature is of type {type(given).__name__}; expected a number or {else_expected}")
    try:
        return float(given)
    except OverflowError:
        raise InvalidArgument("temperature is too large; expected a number from 2^-20 to 2^20") from None


def does_not_expand(shape: Any, rows: Any) -> InvalidArgument:
    """What a temperature of another shape is told; to be raised."""
    return InvalidArgument(
        f"temperature has the shape {list(shape)}; expected one that expands to {list(rows)}, as logits have it"
    )
