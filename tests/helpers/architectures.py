"""Every type of causal language model that transformers knows, as small as its config class allows, and its probe."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from lib.core.config import Lora, Model
from lib.model.loading import attach_tuner
from lib.model.policy import Policy
from lib.rl.probe import Gaps, probe, readable

PROMPT = [5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 3, 4, 20, 21, 22, 23]
PARAMETERS = 10_000_000  # at most
NOISE = 0.2  # on every weight: so that logits are far apart, and a forgotten norm or bias shows

# What a config may call its sizes, and what may bend its logits: taken where it has a field of that name that is set.
FIELDS = {
    "vocab_size": 60, "max_position_embeddings": 128, "n_positions": 128, "n_ctx": 128, "context_length": 128,
    "hidden_size": 32, "d_model": 32, "n_embd": 32, "emb_dim": 32, "embedding_size": 32, "word_embed_proj_dim": 32,
    "intermediate_size": 48, "n_inner": 48, "dff": 48, "ffn_dim": 48, "d_ff": 48, "ffn_hidden_size": 48,
    "decoder_ffn_dim": 48, "encoder_ffn_dim": 48, "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2,
    "decoder_layers": 2, "encoder_layers": 2, "num_attention_heads": 4, "n_head": 4, "n_heads": 4, "num_heads": 4,
    "decoder_attention_heads": 4, "encoder_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "d_kv": 8,
    "rotary_dim": 4, "sliding_window": 6, "attention_window_size": 6, "max_window_layers": 1,
    "num_global_key_value_heads": 2, "global_head_dim": 8,
    # experts
    "num_experts": 4, "num_local_experts": 4, "moe_num_experts": 4, "n_routed_experts": 4, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "moe_k": 2, "n_group": 1, "topk_group": 1, "first_k_dense_replace": 1,
    "moe_intermediate_size": 16, "shared_expert_intermediate_size": 16,
    # latent attention, linear attention, state spaces
    "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 8, "v_head_dim": 8,
    "linear_key_head_dim": 8, "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
    "linear_head_dim": 8, "linear_num_heads": 4, "lru_width": 32, "state_size": 8, "ssm_state_size": 8,
    "attention_hidden_size": 32, "mamba_d_state": 8, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_ssm": 64,
    "mamba_num_heads": 4, "mamba_head_dim": 16,
    # what is done to logits
    "logits_scaling": 3.0, "logit_scale": 0.5, "lm_head_multiplier": 0.5, "final_logit_softcapping": 20.0,
    "logits_soft_cap": 20.0, "output_logit_soft_cap": 20.0, "is_decoder": True,
}  # fmt: skip
IDS = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}

# Beside these, or instead of them; None: as the config has it.
LATENT = {"head_dim": None, "num_key_value_heads": 4}
MIXED = {"layer_types": ["linear_attention", "full_attention"]}
SHORT = {"layer_types": ["conv", "full_attention"]}
PER_LAYER = {"vocab_size_per_layer_input": 60, "hidden_size_per_layer_input": 8, "num_kv_shared_layers": 0}
EXPERTS = {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1}
MORE = {
    "axk1": LATENT, "axk2": LATENT, "deepseek_v2": LATENT | {"num_experts_per_tok": 2}, "deepseek_v3": LATENT,
    "deepseek_v32": LATENT, "glm4_moe_lite": LATENT, "glm_moe_dsa": LATENT, "youtu": LATENT,
    "kimi_linear": LATENT | MIXED, "minicpm3": LATENT | {"logits_scaling": None, "dim_model_base": 8},
    "longcat_flash": LATENT | {"expert_ffn_hidden_size": 16, "zero_expert_num": 1, "moe_topk": 2, "num_layers": 1},
    "bamba": {"attn_layer_indices": [1]},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "expert_layer_period": 2, "expert_layer_offset": 1},
    "granitemoehybrid": MIXED, "qwen3_next": MIXED, "qwen3_5_text": MIXED, "qwen3_5_moe_text": MIXED,
    "minimax": MIXED, "lfm2": SHORT, "lfm2_moe": SHORT | {"num_dense_layers": 1}, "nemotron_h": {"n_groups": 1},
    "zamba": {"layers_block_type": ["linear_attention", "hybrid"]},
    "zamba2": {"layers_block_type": ["linear_attention", "hybrid"]},
    "mamba2": {"num_heads": 8, "n_groups": 1}, "recurrent_gemma": {"num_hidden_layers": 3},
    "xlstm": {"v_head_dim": None, "hidden_size": 128}, "falcon": {"head_dim": None},
    "hunyuan_v1_dense": {"head_dim": 8}, "hunyuan_v1_moe": {"head_dim": 8, "moe_topk": 2}, "ministral": {"head_dim": 8},
    "nemotron": {"head_dim": 8, "num_key_value_heads": 2}, "dots1": EXPERTS,
    "gpt_neo": {"attention_types": [[["global", "local"], 1]], "window_size": 6},
    "zaya": {"num_experts_per_tok": 1}, "dbrx": {"attn_config": {"rope_theta": 1e4, "kv_n_heads": 2, "clip_qkv": 8}},
    "rembert": {"input_embedding_size": 32, "output_embedding_size": 32},
    "prophetnet": {"num_hidden_layers": None, "num_decoder_layers": 2, "num_encoder_layers": 2},
    "xlnet": {"max_position_embeddings": None},
    "reformer": {"axial_pos_embds": False, "attn_layers": ["local"], "attention_head_size": 8, "feed_forward_size": 48},
    "roc_bert": {"pronunciation_vocab_size": 20, "shape_vocab_size": 20},
    "gemma3n_text": PER_LAYER
    | {"layer_types": ["sliding_attention", "full_attention"], "activation_sparsity_pattern": [0.0, 0.0]},
    "gemma4_text": PER_LAYER | {"head_dim": None}, "gemma4_unified_text": PER_LAYER | {"head_dim": None},
}  # fmt: skip
# Layers that take an adapter where not all do: peft leaves out those of state spaces, and routers of experts break.
TARGETS = {
    "mamba": ["in_proj"], "mamba2": ["in_proj"], "falcon_mamba": ["in_proj"], "nemotron_h": ["q_proj", "in_proj"],
    "falcon_h1": ["q_proj", "in_proj"], "phimoe": ["q_proj"], "llama4_text": ["q_proj"],
}  # fmt: skip


def config_of(kind: str) -> object:
    """The small config of a type."""
    more = MORE.get(kind, {})
    default = AutoConfig.for_model(kind)
    fields = dict(IDS)
    for name, value in FIELDS.items():
        try:
            is_set = getattr(default, name, None) is not None
        except Exception:  # some raise errors of their own for a field that every layer has another value of
            is_set = False
        if is_set and name not in more:
            fields[name] = value
    return AutoConfig.for_model(kind, **fields, **{name: value for name, value in more.items() if value is not None})


def built(kind: str) -> torch.nn.Module:
    """A small random model of a type. Raises where transformers does, and ValueError where it would not be small."""
    config = config_of(kind)
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in AutoModelForCausalLM.from_config(config).parameters())
    if size > PARAMETERS:
        raise ValueError(f"{size / 1e6:.0f} M parameters")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).requires_grad_(False)
        for parameter in model.parameters():
            parameter += NOISE * torch.randn_like(parameter)
    return model


def probed(kind: str, model: torch.nn.Module) -> Gaps:
    """As a run at its start. Raises ConfigError."""
    lora = Lora(r=4, targets=TARGETS.get(kind, "all-linear"))
    adapted = attach_tuner(model, lora, Model(name=kind), "plain", seed=0)
    with readable(model, kind):
        policy = Policy(adapted, temperature=0.8)
    return probe(policy, PROMPT, pad_id=0, name=kind)


TYPES = sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
