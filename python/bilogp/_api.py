"""The functions of bilogp. Arrays may be numpy's, torch's, cupy's, jax's or anything with ``__dlpack__``; nothing is
copied, results have the type that came in and lie on its device, work is queued on its current stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from . import _checks, _core, _families
from ._arrays import as_given, current_stream, maximum, note_written
from ._results import BackEnd, ForwardResult, KernelInfo, LogpResult, RuntimeInfo, Shard, TargetErrors, WarmupReport
from .errors import InvalidArgument, WrongType

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
    temperature: a number, or a float32 array with one entry per row; logits are divided by it.
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
    if inplace and out is not None:
        raise InvalidArgument("inplace and out are both given; expected one of them")
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
    if inplace or out is not None:
        note_written(gradient)
        return gradient
    return as_given(logits, gradient)[0]


def node_count(begin: int, end: int, full_vocab: int) -> int:
    """Nodes that the columns [begin, end) of a vocabulary contribute to each row."""
    named = {"begin": begin, "end": end, "full_vocab": full_vocab}
    return int(_core.node_count(*(_checks.whole_number(name, value) for name, value in named.items())))


def logp_partial(
    logits: Any,
    target_ids: Any,
    shard_begin: int,
    full_vocab: int,
    ignore_index: int = -100,
    *,
    validate: bool | None = None,
    temperature: Any = 1.0,
    vocab_size: int | None = None,
    numerics: str = "portable",
) -> Shard:
    """What the columns of one shard contribute. `logits` are ``[..., columns of the shard]`` and begin at column
    `shard_begin` of `full_vocab`; ids and `vocab_size` count columns of the whole vocabulary."""
    results = _core.logp_partial(
        logits,
        target_ids,
        shard_begin,
        full_vocab,
        ignore_index,
        validate,
        temperature,
        vocab_size,
        numerics,
        current_stream(logits),
    )
    begin = int(shard_begin)
    return Shard(begin, begin + logits.shape[-1], *as_given(logits, *results))


def logp_finish(
    shards: Sequence[Shard],
    target_ids: Any,
    full_vocab: int,
    ignore_index: int = -100,
    *,
    target_logit: Any = None,
    validate: bool | None = None,
    temperature: Any = 1.0,
    vocab_size: int | None = None,
    numerics: str = "portable",
) -> ForwardResult:
    """Joins the shards of a vocabulary, in any order, to the bits that the whole row would give.

    target_logit: the maximum of the shards' (an all-reduce's result, say); taken from `shards` when it is None.
    """
    if not isinstance(shards, Sequence) or not all(isinstance(shard, Shard) for shard in shards):
        raise WrongType("shards is no sequence of bilogp.Shard; pass those that logp_partial gave, as a list")
    if not shards:
        raise InvalidArgument("shards is empty; expected at least one, together covering the vocabulary once")
    if target_logit is None:
        target_logit = maximum([shard.target_logit for shard in shards])
    results = _core.logp_finish(
        [_checks.whole_number("a shard's begin", shard.begin) for shard in shards],
        [_checks.whole_number("a shard's end", shard.end) for shard in shards],
        [shard.nodes for shard in shards],
        _checks.whole_number("full_vocab", full_vocab),
        target_ids,
        target_logit,
        ignore_index,
        validate,
        temperature,
        vocab_size,
        numerics,
        current_stream(target_logit),
    )
    return ForwardResult(*as_given(target_logit, *results))


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
    "logp_backward",
    "logp_finish",
    "logp_forward",
    "logp_partial",
    "node_count",
    "num_threads",
    "runtime_info",
    "set_num_threads",
    "take_errors",
    "warmup",
]
