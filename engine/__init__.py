"""Token ids in, token ids and log-probs out: samples a causal language model with adapters, and scores tokens under it.

Imports nothing of lib, and lib takes all names from here. The parts, in reading order; each may refer back only:

head        log-prob, entropy and exact KL from hidden states, without an [N, V] tensor
divergence  KL between policy and teacher, over whole vocabularies
"""
# ruff: noqa: F401  (others import these names)

from engine.divergence import TeacherStates, teacher_kl
from engine.head import CHUNK_ELEMENTS, Head, is_quick_on_cpu, token_scores
