"""What others offer for the same question. A peer that is not installed, or that fails, is left out."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def _tile_rows(x, ids, out, columns, stride, block: tl.constexpr):
    # A fixed tile order per row, as batch-invariant modes of inference engines have it.
    row = tl.program_id(0).to(tl.int64)
    high = -float("inf")
    total = 0.0
    for begin in range(0, columns, block):
        at = begin + tl.arange(0, block)
        values = tl.load(x + row * stride + at, mask=at < columns, other=-float("inf")).to(tl.float32)
        new_high = tl.maximum(high, tl.max(values, 0))
        total = total * tl.exp(high - new_high) + tl.sum(tl.exp(values - new_high), 0)
        high = new_high
    target = tl.load(ids + row)
    logit = tl.load(x + row * stride + target).to(tl.float32)
    tl.store(out + row, logit - high - tl.log(total))


def triton_tiles(logits, ids):
    out = torch.empty(len(ids), device="cuda")
    return lambda: _tile_rows[(len(ids),)](logits, ids, out, logits.shape[1], logits.stride(0), 4096, num_warps=8)


def torch_eager(logits, ids):
    return lambda: torch.log_softmax(logits.float(), -1).gather(-1, ids[:, None])


def torch_compiled(logits, ids):
    torch._dynamo.reset()  # it gives up after eight shapes
    call = torch.compile(lambda x, i: torch.log_softmax(x.float(), -1).gather(-1, i[:, None]), dynamic=False)
    return lambda: call(logits, ids)


def torch_cross_entropy(logits, ids):
    return lambda: F.cross_entropy(logits, ids, reduction="none")


def liger(logits, ids):
    from liger_kernel.ops.grpo_loss import fused_selective_log_softmax
    if len(ids) < 1024:
        raise RuntimeError("it takes one row less than there are, which counts here")
    return lambda: fused_selective_log_softmax(logits[None], ids[None, :-1], 1.0)


def trl(logits, ids):
    from trl.kernels.logprob_entropy import selective_log_softmax_and_entropy
    return lambda: selective_log_softmax_and_entropy(logits, ids)


def quack(logits, ids):
    from quack.cross_entropy import cross_entropy_fwd
    return lambda: cross_entropy_fwd(logits, ids, return_lse=True)


def quack_with_gradient(logits, ids, grad):
    from quack.cross_entropy import cross_entropy_fwd
    return lambda: cross_entropy_fwd(logits, ids, return_lse=True, return_dx=True)


FORWARD = {"torch eager": torch_eager, "torch compiled": torch_compiled, "torch cross_entropy": torch_cross_entropy,
           "triton tiles": triton_tiles, "liger selective": liger, "trl selective": trl, "quack": quack}
