"""Both passes without autograd: row states and gradients as arrays."""

from __future__ import annotations

from typing import Any

from . import _core
from ._arrays import as_given, current_stream, note_written
from ._results import ForwardResult, GradientResult
from .errors import InvalidArgument


def _refuse_two_places(inplace: bool, out: Any) -> None:
    if inplace and out is not None:
        raise InvalidArgument("inplace and out are both given; expected one of them")


def _gradient_given(logits: Any, gradient: Any, inplace: bool, out: Any) -> Any:
    """The caller's own array, noted as written, or a new one in the type that the logits came in."""
    if inplace or out is not None:
        note_written(gradient)
        return gradient
    return as_given(logits, gradient)[0]


def logp_forward(
    logits: Any,
    target_ids: Any,
    ignore_index: int = -100,
    *,
    validate: bool | None = None,
    temperature: Any = 1.0,
    vocab_size: int | None = None,
    numerics: str = "portable",
) -> ForwardResult:
    """``logp`` without autograd, and with the row state that ``logp_backward`` takes."""
    results = _core.logp_forward(
        logits,
        target_ids,
        ignore_index,
        validate,
        temperature,
        vocab_size,
        numerics,
        True,
        stream=current_stream(logits),
    )
    return ForwardResult(*as_given(logits, *results))


def logp_backward(
    logits: Any,
    target_ids: Any,
    grad_logp: Any,
    row_state: Any = None,
    ignore_index: int = -100,
    *,
    validate: bool | None = None,
    temperature: Any = 1.0,
    vocab_size: int | None = None,
    numerics: str = "portable",
    inplace: bool = False,
    out: Any = None,
    shard_begin: int = 0,
    full_vocab: int | None = None,
) -> Any:
    """The gradient of ``sum(grad_logp * logp)`` for the logits, in their dtype.

    grad_logp: float32 ``[...]``; strides may be 0 (an expanded scalar).
    row_state: of ``logp_forward`` or, for a shard, of ``logp_finish``; computed again when it is None.
    inplace: writes over the logits and returns them. out: another array for the gradient.
    Bad ids have been counted by the forward pass and are not counted again; their rows' gradient is zero.
    shard_begin, full_vocab: where a shard's logits begin in the whole vocabulary, and its number of columns.
    """
    _refuse_two_places(inplace, out)
    if row_state is None:
        if full_vocab is not None:
            raise InvalidArgument("a shard's gradient needs the row_state of logp_finish; pass it")
        options = {"temperature": temperature, "vocab_size": vocab_size, "numerics": numerics, "validate": validate}
        row_state = logp_forward(logits, target_ids, ignore_index, **options).row_state
    gradient = _core.logp_backward(
        logits,
        target_ids,
        row_state,
        grad_logp,
        ignore_index,
        validate,
        temperature,
        vocab_size,
        numerics,
        inplace,
        out,
        shard_begin,
        -1 if full_vocab is None else full_vocab,
        current_stream(logits),
    )
    return _gradient_given(logits, gradient, inplace, out)


def logp_with_gradient(
    logits: Any,
    target_ids: Any,
    grad_logp: Any,
    ignore_index: int = -100,
    *,
    validate: bool | None = None,
    temperature: Any = 1.0,
    vocab_size: int | None = None,
    numerics: str = "portable",
    inplace: bool = False,
    out: Any = None,
) -> GradientResult:
    """``logp_forward`` and ``logp_backward`` in one, for an upstream gradient that is known beforehand: the same bits
    from one pass over the logits, where the device can keep a row.

    grad_logp: float32 ``[...]``; strides may be 0. inplace: the gradient is written over the logits. out: another array
    for it.
    """
    _refuse_two_places(inplace, out)
    logp, lse, gradient = _core.logp_with_gradient(
        logits,
        target_ids,
        grad_logp,
        ignore_index,
        validate,
        temperature,
        vocab_size,
        numerics,
        inplace,
        out,
        current_stream(logits),
    )
    gradient = _gradient_given(logits, gradient, inplace, out)
    return GradientResult._make([*as_given(logits, logp, lse), gradient])
