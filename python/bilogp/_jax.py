"""jax on a CPU: a custom_vjp over XLA's foreign function interface; jit, grad and vmap work.

Errors inside ``jit`` are raised by the compiled program: as jax's own exception, with the library's sentence in it.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _checks, _core
from ._results import LogpResult
from .errors import Error, InvalidArgument, TargetOutOfRange, Unsupported, WrongType

_LOGITS = ("float32", "float16", "bfloat16")
_IDS = ("int32", "int64")

for _name, _handler in _core.jax_handlers().items():
    jax.ffi.register_ffi_target(_name, _handler, platform="cpu")

_Options = tuple[int, int, int]  # ignore_index, vocab_size, validate


def _attributes(options: _Options) -> dict[str, Any]:
    return dict(zip(("ignore_index", "vocab_size", "validate"), map(np.int64, options)))


def _forward(options: _Options, logits: Any, target_ids: Any, temperature: Any) -> Any:
    rows = logits.shape[:-1]
    results = (
        jax.ShapeDtypeStruct(target_ids.shape, jnp.float32),
        jax.ShapeDtypeStruct(rows, jnp.float32),
        jax.ShapeDtypeStruct((*rows, 2), jnp.int32),
    )
    call = jax.ffi.ffi_call("bilogp_logp", results, vmap_method="broadcast_all")
    return call(logits, target_ids, temperature, **_attributes(options))


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _logp(options: _Options, logits: Any, target_ids: Any, temperature: Any) -> Any:
    return _forward(options, logits, target_ids, temperature)[:2]


def _keep(options: _Options, logits: Any, target_ids: Any, temperature: Any) -> Any:
    if target_ids.ndim == logits.ndim:
        raise Unsupported("K target ids per row have no gradient; pass one id per row")
    logp, lse, row_state = _forward(options, logits, target_ids, temperature)
    return (logp, lse), (logits, target_ids, temperature, row_state)


def _gradient(options: _Options, kept: Any, grads: Any) -> Any:
    logits, target_ids, temperature, row_state = kept
    call = jax.ffi.ffi_call(
        "bilogp_logp_backward", jax.ShapeDtypeStruct(logits.shape, logits.dtype), vmap_method="broadcast_all"
    )
    grad = call(logits, target_ids, row_state, grads[0], temperature, **_attributes(options))
    return grad, None, None


_logp.defvjp(_keep, _gradient)


def _check(logits: Any, target_ids: Any, numerics: str, out: Any) -> None:
    if logits.dtype.name not in _LOGITS:
        raise WrongType(f"logits is {logits.dtype}; expected {', '.join(_LOGITS)}")
    if target_ids.dtype.name not in _IDS:
        raise WrongType(f"target_ids is {target_ids.dtype}; expected {' or '.join(_IDS)}")
    if logits.ndim < 2 or target_ids.shape[: logits.ndim - 1] != logits.shape[:-1]:
        raise InvalidArgument(
            f"target_ids has the shape {list(target_ids.shape)}; expected {list(logits.shape[:-1])} as logits have it"
        )
    if out is not None:
        raise Unsupported("out is given, but jax arrays cannot be written; leave it out")
    if numerics != "portable":
        raise Unsupported(f'numerics is "{numerics}"; expected "portable", which is all that jax arrays have')
    is_traced = isinstance(logits, jax.core.Tracer) or not isinstance(logits, jax.Array)
    if not is_traced and any(device.platform != "cpu" for device in logits.devices()):
        raise Unsupported("logits is a jax array on a GPU; expected one on a CPU, or arrays of torch or cupy")


def _as_jax(target_ids: Any) -> Any:
    if not hasattr(target_ids, "dtype") or not hasattr(target_ids, "shape"):
        raise WrongType(f"target_ids is of type {type(target_ids).__name__}; expected an array of jax or numpy")
    if isinstance(target_ids, np.ndarray) and target_ids.dtype == np.int64 and not jax.config.jax_enable_x64:
        # jax would wrap ids of more than 32 bits into the vocabulary.
        target_ids = np.clip(target_ids, -(2**31), 2**31 - 1)
    return jnp.asarray(target_ids)


def _temperature_of_rows(temperature: Any, rows: tuple[int, ...]) -> Any:
    if not isinstance(temperature, (jax.Array, np.ndarray)):
        temperature = _checks.temperature(temperature, "a jax array with one entry per row")
        if not 2.0**-20 <= temperature <= 2.0**20:
            raise InvalidArgument(f"temperature is {temperature:g}; expected a number from 2^-20 to 2^20")
    try:
        expanded = jnp.broadcast_to(jnp.asarray(temperature, jnp.float32), rows)
    except ValueError:
        raise _checks.does_not_expand(temperature.shape, rows) from None
    return jax.lax.stop_gradient(expanded)


def _as_ours(error: Exception) -> Exception:
    """An error of the library that came through XLA, which puts a code before the sentence."""
    code, _, sentence = str(error).partition(": ")
    kinds = {"OUT_OF_RANGE": TargetOutOfRange, "INVALID_ARGUMENT": InvalidArgument}
    return kinds[code](sentence) if code in kinds else error


def logp(
    logits: Any,
    target_ids: Any,
    ignore_index: int,
    validate: bool | None,
    temperature: Any,
    vocab_size: int | None,
    return_lse: bool,
    numerics: str,
    inplace_backward: bool,
    out: Any,
) -> Any:
    target_ids = _as_jax(target_ids)
    _check(logits, target_ids, numerics, out)
    rows = _temperature_of_rows(temperature, logits.shape[:-1])
    options = (
        _checks.whole_number("ignore_index", ignore_index),
        _checks.vocab_size(vocab_size),
        _checks.validate(validate),
    )
    return_lse = _checks.truth("return_lse", return_lse)
    _checks.truth("inplace_backward", inplace_backward)  # XLA decides itself what is in place
    try:
        answer, lse = _logp(options, logits, target_ids, rows)
    except Error:
        raise
    except (ValueError, RuntimeError) as error:
        raise _as_ours(error) from None
    return LogpResult(answer, jax.lax.stop_gradient(lse)) if return_lse else answer
