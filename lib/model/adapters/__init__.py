"""The shelf of adapters: small trainable changes of a frozen decoder, with LoRA or without it.

contract                                    what every adapter is
sites                                       where in a decoder they go
gates                                       factors of what linear layers read or write
attention                                   factors of what attention compares
rope, bottleneck, deltas, soft_prompt       the others: mates do not know each other
shelf                                       all of a model: built from a config, switched, blended, counted, folded
"""
