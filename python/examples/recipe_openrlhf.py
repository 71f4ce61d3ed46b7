"""OpenRLHF with bilogp: `from bilogp.adapters.openrlhf import log_probs_from_logits`, or `...install()`.

python recipe_openrlhf.py
"""

import torch

from bilogp.adapters.openrlhf import log_probs_from_logits

logits = torch.randn(2, 16, 32000)
before = logits.clone()
labels = torch.randint(0, 32000, (2, 16))

log_probs = log_probs_from_logits(logits, labels, temperature=0.7)
print("the caller's logits are as they were:", torch.equal(logits, before))
print("same bits for each sequence alone:",
      all(torch.equal(log_probs_from_logits(x, t, 0.7), y) for x, t, y in zip(logits, labels, log_probs)))  # fmt: skip
