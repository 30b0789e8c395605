"""Token ids in, token ids and log-probs out: samples a causal language model with adapters, and scores tokens under it.

Imports nothing of lib, and lib takes all names from here. The parts, in reading order; each may refer back only:

turns       what is asked of the sampler, and what it returns
head        log-prob, entropy and exact KL from hidden states, without an [N, V] tensor
divergence  KL between policy and teacher, over whole vocabularies
model       the backbone of a model, and whether other processes hold parts of it
llama       the forward of the Llama family, written out
slab        keys and values of many rows in one place, and attention to them
decoder     the forward that extends the rows of a slab
policy      what a model must have to be sampled
sampling    completions of many prompts and of the turns that follow, each with random numbers of its own
"""
# ruff: noqa: F401  (others import these names)

from engine.decoder import bytes_per_token
from engine.divergence import TeacherStates, teacher_kl
from engine.head import CHUNK_ELEMENTS, Head, token_scores
from engine.llama import Llama, attend_within
from engine.model import backbone_of, is_sharded
from engine.policy import SampledPolicy
from engine.sampling import Decoding, NonFinite, generate
from engine.turns import Completion, FollowUp, TreePath, Turn, nothing_follows
