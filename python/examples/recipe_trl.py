"""TRL with bilogp: one line, before the trainer is made.

    python recipe_trl.py

TRL looks its function up by name, so that `install` is all; here the function is called as GRPOTrainer calls it.
"""

import torch
import trl.trainer.utils

import bilogp.adapters.trl

print("replaced in:", ", ".join(bilogp.adapters.trl.install()))

logits = torch.randn(2, 16, 32000, dtype=torch.bfloat16, requires_grad=True)
completion_ids = torch.randint(0, 32000, (2, 16))
completion_mask = torch.ones(2, 16, dtype=torch.long)
completion_mask[1, 9:] = 0

per_token = trl.trainer.utils.selective_log_softmax(logits, completion_ids, temperature=0.9, row_mask=completion_mask)
alone = trl.trainer.utils.selective_log_softmax(
    logits[1:], completion_ids[1:], temperature=0.9, row_mask=completion_mask[1:]
)
print("same bits in a batch of one:", torch.equal(per_token[1:], alone))
per_token.sum().backward()
print("gradient of a masked row is zero:", not logits.grad[1, 9:].any())
