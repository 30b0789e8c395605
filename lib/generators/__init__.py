"""Whoever writes text, and what becomes of it.

`native` takes token ids, a `Turn`, and gives a `Completion`, because what is trained must be scored token by token.
`openai`, and a model of this process in `local`, take a chat, a `Request`, and give a `Reply`;
`openai` also takes token ids to score, a `Scoring`, and gives `Scores`.

protocol          what generators are given and give
scoring           the most likely tokens at the places of a text, on the wire
native, openai    the two kinds: mates do not know each other
vllm_server       a vLLM server: found or started, asked, watched, stopped
vllm              sampling by it: the adapter travels, and log-probs are compared whenever it has
engines           which of the two samples what the policy writes
local             a model in this process that answers chats
reply_cache       replies and pages on disk: a resumed run asks nothing twice
remote            a server that is asked beside the training; an outage is no exception
selection         which rollouts are kept
progress          what a collection of rollouts has come to, and what is left to go
"""
