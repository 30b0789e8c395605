"""Tensors: a frozen base, an adapter on it, and what computes with them.

logits      factors and soft-caps around a model's output layer, measured
sharding    a frozen base that several processes hold together
adapters/   the shelf: small trainable changes of a frozen decoder, with LoRA or without it
merging     an adapter that becomes part of its base, in memory or in a folder
loading     a frozen base and adapters on it, by plain transformers or Unsloth
policy      base and adapters as one, and log-probs of tokens under them
scratch     a tiny model and its character tokenizer, built from YAML
examples    chats as labelled tokens of one model
"""
