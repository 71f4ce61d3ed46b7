"""A vocabulary in shards, joined to the bits of the whole row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from . import _checks, _core
from ._arrays import as_given, current_stream, maximum
from ._results import ForwardResult, Shard
from .errors import InvalidArgument, WrongType


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
