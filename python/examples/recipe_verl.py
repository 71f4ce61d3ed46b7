"""verl with bilogp: `from bilogp.adapters.verl import logprobs_from_logits`, or `bilogp.adapters.verl.install()`.

python recipe_verl.py
"""

import torch

from bilogp.adapters.verl import logprobs_from_logits

hidden = torch.randn(2, 16, 64, requires_grad=True)
logits = hidden @ torch.randn(64, 32000)
responses = torch.randint(0, 32000, (2, 16))

log_probs = logprobs_from_logits(logits=logits, labels=responses)  # the gradient goes over the logits, as in verl
rollout = torch.stack([logprobs_from_logits(row.detach(), ids) for row, ids in zip(logits, responses)])
print("ratio of trainer and sampler:", torch.exp(log_probs - rollout).unique().tolist())
log_probs.sum().backward()
print("gradient reached the hidden states:", bool(hidden.grad.any()))
