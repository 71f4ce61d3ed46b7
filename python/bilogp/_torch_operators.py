"""torch's operators: ``torch.ops.bilogp`` with fakes and autograd, and the calls of the extension behind them."""

from __future__ import annotations

from typing import Any, NoReturn

import torch
from torch import Tensor

from . import _arrays, _core
from .errors import Unsupported

_VALIDATE = (None, True, False)  # as numbers of the operators' schema
_backward_pass = torch._C._current_graph_task_id  # -1: none
has_exchange = hasattr(Tensor, "__dlpack_c_exchange_api__")


def stream_of(tensor: Tensor) -> int | None:
    return None if has_exchange else _arrays.current_stream(tensor)


def _is_repeated() -> bool:
    """Inside a backward pass, where activation checkpointing repeats what has counted its bad ids before."""
    return bool(_backward_pass() != -1)


def score(
    logits: Tensor,
    target_ids: Tensor,
    row_temperature: Tensor | None,
    temperature: float,
    ignore_index: int,
    vocab_size: int,
    validate: int,
    numerics: str,
    with_lse: bool = True,
) -> tuple[Tensor, Tensor, Tensor]:
    return _core.logp_forward(
        logits,
        target_ids,
        ignore_index,
        _VALIDATE[validate],
        temperature if row_temperature is None else row_temperature,
        None if vocab_size < 0 else vocab_size,
        numerics,
        with_lse,
        _is_repeated(),
        stream_of(logits),
    )


def gradient(
    logits: Tensor,
    target_ids: Tensor,
    row_state: Tensor,
    grad_logp: Tensor,
    row_temperature: Tensor | None,
    temperature: float,
    ignore_index: int,
    vocab_size: int,
    numerics: str,
    inplace: bool = False,
) -> Tensor:
    result: Tensor = _core.logp_backward(
        logits,
        target_ids,
        row_state,
        grad_logp.resolve_neg(),
        ignore_index,
        False,  # the forward pass has checked them, or was told not to
        temperature if row_temperature is None else row_temperature,
        None if vocab_size < 0 else vocab_size,
        numerics,
        inplace,
        None,
        0,
        -1,
        stream_of(logits),
    )
    return result


def no_second_derivative() -> NoReturn:
    raise Unsupported(
        "the gradient of bilogp.logp has no derivative of its own (double backward); detach it, or call backward "
        "without create_graph"
    )


_library = torch.library.Library("bilogp", "DEF")
_OPTIONS = "Tensor? row_temperature, float temperature, int ignore_index, int vocab_size"
_library.define(
    f"logp(Tensor logits, Tensor target_ids, {_OPTIONS}, int validate, str numerics) -> (Tensor, Tensor, Tensor)"
)
_library.define(
    f"logp_backward(Tensor logits, Tensor target_ids, Tensor row_state, Tensor grad_logp, {_OPTIONS}, str numerics)"
    " -> Tensor"
)


for _device in ("CPU", "CUDA"):
    _library.impl("logp", score, _device)
    _library.impl("logp_backward", gradient, _device)


def _fake_logp(logits: Tensor, target_ids: Tensor, *options: Any) -> tuple[Tensor, Tensor, Tensor]:
    rows = logits.shape[:-1]
    return (
        logits.new_empty(target_ids.shape, dtype=torch.float32),
        logits.new_empty(rows, dtype=torch.float32),
        logits.new_empty((*rows, 2), dtype=torch.int32),
    )


def _fake_backward(logits: Tensor, *arguments: Any) -> Tensor:
    return logits.new_empty(logits.shape)


def _keep_for_backward(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    logits, target_ids, row_temperature, *options, _validate, numerics = inputs
    _, lse, row_state = output
    ctx.save_for_backward(logits, target_ids, row_state, row_temperature)
    ctx.options = (*options, numerics)
    ctx.mark_non_differentiable(lse, row_state)


def _operator_backward(ctx: Any, grad_logp: Tensor, *others: Any) -> Any:
    logits, target_ids, row_state, row_temperature = ctx.saved_tensors
    grad = torch.ops.bilogp.logp_backward(logits, target_ids, row_state, grad_logp, row_temperature, *ctx.options)
    return (grad,) + (None,) * 7


def _refuse_double_backward(ctx: Any, *grads: Any) -> Any:
    no_second_derivative()


torch.library.register_fake("bilogp::logp", _fake_logp, lib=_library)
torch.library.register_fake("bilogp::logp_backward", _fake_backward, lib=_library)
torch.library.register_autograd("bilogp::logp", _operator_backward, setup_context=_keep_for_backward, lib=_library)
torch.library.register_autograd("bilogp::logp_backward", _refuse_double_backward, lib=_library)
