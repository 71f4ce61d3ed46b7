"""torch: autograd, and operators that compile, export and trace.

Plain eager calls go straight to the extension, under an autograd function where a gradient is recorded. Everything
that looks at operators (torch.compile, torch.export, fake tensors, function transforms, tensor subclasses) meets
``torch.ops.bilogp``, which has the same bits.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from . import _checks, _core
from ._results import LogpResult
from ._torch_operators import gradient, has_exchange, no_second_derivative, score, stream_of
from .errors import InvalidArgument, Unsupported, WrongType

_PLAIN_TYPES = (Tensor, torch.nn.Parameter)
# Looked up once: a call of few rows is spent mostly in such questions.
_dispatch_modes = torch._C._len_torch_dispatch_stack
_function_modes = torch._C._len_torch_function_stack
_transform = torch._C._functorch.peek_interpreter_stack
_tracing_state = torch._C._get_tracing_state
_is_compiling = torch.compiler.is_compiling
_is_grad_enabled = torch.is_grad_enabled


class _Gradient(torch.autograd.Function):
    """The gradient under create_graph: right, and a clear error when it is differentiated."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> Tensor:
        return gradient(*arguments)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        no_second_derivative()


class _Logp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, target_ids: Tensor, row_temperature: Tensor | None, inplace: bool, with_lse: bool,
        temperature: float, ignore_index: int, vocab_size: int, validate: int, numerics: str,
    ) -> Any:  # fmt: skip
        logp, lse, row_state = score(
            logits, target_ids, row_temperature, temperature, ignore_index, vocab_size, validate, numerics, with_lse
        )
        ctx.save_for_backward(logits, target_ids, row_state, row_temperature)
        ctx.inplace = inplace
        ctx.options = (temperature, ignore_index, vocab_size, numerics)
        if not with_lse:
            return logp
        ctx.mark_non_differentiable(lse)
        return logp, lse

    @staticmethod
    def backward(ctx: Any, grad_logp: Tensor, *grad_lse: Any) -> Any:
        logits, target_ids, row_state, row_temperature = ctx.saved_tensors
        arguments = (logits, target_ids, row_state, grad_logp, row_temperature, *ctx.options)
        if torch.is_grad_enabled():
            grad = _Gradient.apply(*arguments)
        elif ctx.inplace:
            gradient(*arguments, True)  # type: ignore[call-arg]
            torch.autograd.graph.increment_version(logits)
            grad = logits.detach()
        else:
            grad = gradient(*arguments)
        return (grad,) + (None,) * 9


def _split_temperature(logits: Tensor, temperature: Any) -> tuple[Tensor | None, float]:
    """A tensor is expanded over the rows: per token, per sequence ([batch, 1]), or a single number on the device."""
    if not isinstance(temperature, Tensor):
        return None, _checks.temperature(temperature, "a torch.Tensor with one entry per row")
    rows = logits.shape[:-1]
    try:
        return temperature.detach().expand(rows), 1.0
    except RuntimeError:
        raise _checks.does_not_expand(temperature.shape, rows) from None


def _check_tensors(target_ids: Any, out: Any) -> None:
    for name, given in (("target_ids", target_ids), ("out", target_ids if out is None else out)):
        if not isinstance(given, Tensor):
            raise WrongType(f"{name} is of type {type(given).__name__}; expected a torch.Tensor, as logits are")


def _check_recorded(logits: Tensor, target_ids: Tensor, out: Tensor | None) -> None:
    if target_ids.ndim == logits.ndim:
        raise Unsupported(
            "K target ids per row have no gradient, but logits require one; call under torch.no_grad(), or pass one id "
            "per row"
        )
    if out is not None:
        raise InvalidArgument(
            "out is given, but logits require a gradient; leave it out, or call under torch.no_grad()"
        )


def logp(
    logits: Tensor,
    target_ids: Tensor,
    ignore_index: int,
    validate: bool | None,
    temperature: Any,
    vocab_size: int | None,
    return_lse: bool,
    numerics: str,
    inplace_backward: bool,
    out: Tensor | None,
) -> Any:
    is_plain = False
    if not _is_compiling():
        # No tracing and no mode is active, and the tensor is no subclass with ideas of its own.
        is_plain = (
            type(logits) in _PLAIN_TYPES and _dispatch_modes() == 0 and _function_modes() == 0 and not _tracing_state()
        )
        if _transform() is not None:
            raise Unsupported("torch.func's transforms do not reach bilogp.logp; use torch.autograd, or torch.compile")
    is_recorded = logits.requires_grad and _is_grad_enabled()
    if not is_plain or is_recorded or out is not None:
        _check_tensors(target_ids, out)
    if out is not None and out.requires_grad:
        raise InvalidArgument("out requires a gradient; pass a tensor that does not, or out.detach()")
    if is_recorded:
        _check_recorded(logits, target_ids, out)
    if is_plain and not is_recorded:
        if type(temperature) is not float and isinstance(temperature, Tensor):
            temperature = _split_temperature(logits, temperature)[0]
        result = _core.logp(
            logits, target_ids, ignore_index, validate, temperature, vocab_size, return_lse, numerics,
            inplace_backward, out, None if has_exchange else stream_of(logits),
        )  # fmt: skip
        if out is not None:
            torch.autograd.graph.increment_version(out)
        return result

    row_temperature, number = _split_temperature(logits, temperature)
    options = (
        number,
        _checks.whole_number("ignore_index", ignore_index),
        _checks.vocab_size(vocab_size),
        _checks.validate(validate),
        numerics,
    )
    return_lse = _checks.truth("return_lse", return_lse)
    inplace_backward = _checks.truth("inplace_backward", inplace_backward)
    if is_plain:
        result = _Logp.apply(logits, target_ids, row_temperature, inplace_backward, return_lse, *options)
        return LogpResult(*result) if return_lse else result
    # A compiled graph decides itself what is in place.
    answer, lse, _ = torch.ops.bilogp.logp(logits, target_ids, row_temperature, *options)
    if out is not None:
        answer = out.copy_(answer)
    return LogpResult(answer, lse) if return_lse else answer
