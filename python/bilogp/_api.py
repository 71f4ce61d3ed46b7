"""The functions of bilogp. Arrays may be numpy's, torch's, cupy's, jax's or anything with ``__dlpack__``; nothing is
copied, results have the type that came in and lie on its device, work is queued on its current stream."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _checks, _core, _families
from ._results import BackEnd, KernelInfo, LogpResult, RuntimeInfo, TargetErrors, WarmupReport
from .errors import InvalidArgument

_logp_of = _families.logp_of


def logp(
    logits: Any,
    target_ids: Any,
    ignore_index: int = -100,
    *,
    validate: bool | None = None,
    temperature: Any = 1.0,
    vocab_size: int | None = None,
    return_lse: bool = False,
    numerics: str = "portable",
    inplace_backward: bool = False,
    out: Any = None,
) -> Any:
    """Log-probabilities of the target ids: ``logits[row, target] - logsumexp(logits[row, :])``, one answer to the bit.

    logits: ``[..., V]`` float32, float16 or bfloat16, any strides but 1 along V; views such as ``logits[:, :-1]`` are
        scored where they lie.
    target_ids: ``[...]``, or ``[..., K]`` for K answers per row from one pass (forward only); int32 or int64.
    ignore_index: rows with this target are not read; their answer is 0 and their gradient zero.
    validate: True checks the ids first, False answers NaN for a bad one and counts it (see ``take_errors``), None
        checks on a CPU only.
    temperature: a number, or a float32 array with one entry per row; logits are divided by it. No gradient goes there.
    vocab_size: columns from here on are padding and never looked at.
    return_lse: also returns logsumexp(logits / temperature), as ``LogpResult(logp, lse)``; lse carries no gradient.
    numerics: "portable" has the same bits everywhere; "native" (GPU only) uses the device's own exponential.
    inplace_backward: the gradient is written over the logits, whose later use raises. Says nothing where no gradient
        is recorded.
    out: float32 array for the answers; not where gradients are recorded.
    """
    function = _logp_of.get(type(logits)) or _families.find(logits)
    return function(
        logits, target_ids, ignore_index, validate, temperature, vocab_size, return_lse, numerics, inplace_backward, out
    )


def warmup(
    vocab_sizes: int | Iterable[int],
    dtypes: str | Iterable[str] = "bfloat16",
    operators: str | Iterable[str] = ("logp_forward", "logp_backward"),
    *,
    id_dtypes: str | Iterable[str] = "int64",
    target: str = "auto",
    numerics: str = "portable",
    progress: bool | None = None,
) -> WarmupReport:
    """Makes kernels ready: loaded where this machine can run them, else only stored.

    target: "auto" (the CPU), "cpu", "cuda", or one of ``runtime_info``'s kind such as "cuda:sm_90a".
    progress: a bar for what lasts longer than half a second; None shows it in terminals and notebooks.
    """
    from . import _progress

    def listed(value: Any) -> list[Any]:
        return [value] if isinstance(value, str) or not isinstance(value, Iterable) else list(value)

    target = _checks.text("target", target)
    numerics = _checks.text("numerics", numerics)
    asked = [
        (
            _checks.text("the operator", operator),
            _checks.text("the dtype", dtype),
            _checks.text("the id dtype", ids),
            _checks.whole_number("the vocabulary's size", vocab),
        )
        for vocab in listed(vocab_sizes)
        for dtype in listed(dtypes)
        for ids in listed(id_dtypes)
        for operator in listed(operators)
    ]
    kernels: list[KernelInfo] = []
    for operator, dtype, ids, vocab in _progress.bar(asked, progress):
        made = _core.warmup(target, operator, dtype, ids, vocab, numerics)
        kernels.extend(KernelInfo(**kernel) for kernel in made)
    return WarmupReport(tuple(kernels))


def take_errors(device: Any = "cpu") -> TargetErrors:
    """Bad target ids flagged on that device since the last call, with validation off; clears them. A forward pass
    counts them (of shards, ``logp_finish``), the backward pass does not count them again.

    device: "cpu", "cuda", "cuda:1", a ``torch.device``. Synchronize the streams that were used first.
    """
    kind, _, index = str(device).partition(":")
    kinds = {"cpu": 1, "cuda": 2, "hip": 10}
    if kind not in kinds or not (index or "0").isdigit():
        raise InvalidArgument(f'the device is "{device}"; expected cpu, cuda or cuda:N')
    return TargetErrors(
        *_core.take_errors(kinds[kind], _checks.whole_number("the device's index", int(index or 0), 32))
    )


def runtime_info() -> RuntimeInfo:
    """Version, contract, back ends, threads, and the kernels loaded so far."""
    return RuntimeInfo(
        version=_core.version(),
        contract_id=_core.contract_id("portable", "cpu"),
        num_threads=_core.num_threads(),
        back_ends=tuple(BackEnd(**one) for one in _core.back_ends()),
        kernels=tuple(KernelInfo(**one) for one in _core.loaded_kernels()),
    )


def contract_id(numerics: str = "portable", target: str = "cpu") -> str:
    """Two results may be compared bit by bit only when their contract ids are equal."""
    return str(_core.contract_id(_checks.text("numerics", numerics), _checks.text("target", target)))


def set_num_threads(threads: int) -> None:
    """Threads of a CPU call; 0 restores the default (BILOGP_NUM_THREADS, else the cores that may be used)."""
    _core.set_num_threads(_checks.whole_number("threads", threads, 32))


def num_threads() -> int:
    """Threads that a call on the CPU may use."""
    return int(_core.num_threads())


__all__ = [
    "LogpResult",
    "contract_id",
    "logp",
    "num_threads",
    "runtime_info",
    "set_num_threads",
    "take_errors",
    "warmup",
]
