from typing import Any, Sequence

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
    stream: int | None = None,
) -> Any: ...
def logp_forward(
    logits: Any,
    target_ids: Any,
    ignore_index: int,
    validate: bool | None,
    temperature: Any,
    vocab_size: int | None,
    numerics: str,
    with_lse: bool,
    bad_ids_counted: bool = False,
    stream: int | None = None,
) -> tuple[Any, Any, Any]: ...
def logp_backward(
    logits: Any,
    target_ids: Any,
    row_state: Any,
    grad_logp: Any,
    ignore_index: int,
    validate: bool | None,
    temperature: Any,
    vocab_size: int | None,
    numerics: str,
    inplace: bool,
    out: Any,
    shard_begin: int,
    full_vocab: int,
    stream: int | None = None,
) -> Any: ...
def logp_with_gradient(
    logits: Any,
    target_ids: Any,
    grad_logp: Any,
    ignore_index: int,
    validate: bool | None,
    temperature: Any,
    vocab_size: int | None,
    numerics: str,
    inplace: bool,
    out: Any,
    stream: int | None = None,
) -> tuple[Any, Any, Any]: ...
def node_count(begin: int, end: int, full_vocab: int) -> int: ...
def logp_partial(
    logits: Any,
    target_ids: Any,
    shard_begin: int,
    full_vocab: int,
    ignore_index: int,
    validate: bool | None,
    temperature: Any,
    vocab_size: int | None,
    numerics: str,
    stream: int | None = None,
) -> tuple[Any, Any]: ...
def logp_finish(
    begins: Sequence[int],
    ends: Sequence[int],
    nodes: Sequence[Any],
    full_vocab: int,
    target_ids: Any,
    target_logit: Any,
    ignore_index: int,
    validate: bool | None,
    temperature: Any,
    vocab_size: int | None,
    numerics: str,
    stream: int | None = None,
) -> tuple[Any, Any, Any]: ...
def warmup(
    target: str, operator: str, dtype: str, id_dtype: str, vocab_size: int, numerics: str
) -> list[dict[str, Any]]: ...
def take_errors(device_type: int, device_index: int) -> tuple[int, int, int]: ...
def back_ends() -> list[dict[str, Any]]: ...
def loaded_kernels() -> list[dict[str, Any]]: ...
def known_targets() -> list[str]: ...
def set_num_threads(threads: int) -> None: ...
def num_threads() -> int: ...
def version() -> str: ...
def contract_id(numerics: str, target: str) -> str: ...
def jax_handlers() -> dict[str, Any]: ...
