"""What bilogp raises and warns with.

Every error is a :class:`Error` and also the built-in exception that fits, so that ``except ValueError`` works. Its text
is one sentence: what was given, what was expected, what to do.
"""

from __future__ import annotations


class Error(Exception):
    """The base of all errors of bilogp."""


class InvalidArgument(Error, ValueError):
    """A wrong shape, stride, device, memory or option."""


class WrongType(Error, TypeError):
    """An object or a dtype that is none of those expected."""


class TargetOutOfRange(Error, IndexError):
    """A target id outside the vocabulary, with validation on."""


class Unsupported(Error, RuntimeError):
    """Something known that this build, this machine or this operator cannot do."""


class CompileFailed(Error, RuntimeError):
    """The compiler refused a kernel, or is not installed."""


class DeviceError(Error, RuntimeError):
    """The device or its driver reported an error."""


class OutOfMemory(Error, RuntimeError):
    """Memory could not be had."""


class FileError(Error, RuntimeError):
    """A file could not be read or written."""


class StoreError(Error, RuntimeError):
    """The kernel store was asked for something it cannot do."""


class UnknownOperator(Error, KeyError):
    """A name that the kernel registry does not have."""

    __str__ = Exception.__str__  # KeyError's would quote the sentence


class BilogpWarning(UserWarning):
    """What costs speed, never a result: a store that cannot be used, and the like."""


def warn(sentence: str) -> None:
    """Receives the library's warnings, for ``logging`` under the name "bilogp" and for ``warnings``."""
    import logging
    import warnings

    logging.getLogger("bilogp").warning(sentence)
    warnings.warn(sentence, BilogpWarning, stacklevel=3)
