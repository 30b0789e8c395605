"""Sources of text, and what is kept of it.

`native` takes token ids, a `Turn` of engine/, and gives a `Completion`, because what is trained must be scored token by
token.
`openai`, and a model of this process in `local`, take a chat, a `Request`, and give a `Reply`.

protocol          requests for a reply in a chat, and replies
dialects          what is sent to OpenAI's two APIs, and how their answers are read
native, openai    the two kinds: mates do not know each other
vllm_server       a vLLM server: found or started, watched, stopped
vllm              sampling by it: the adapter travels, and log-probs are compared whenever it has
engines           the choice between the two for sampling the policy
local             a model in this process that answers chats
reply_cache       replies and pages on disk: a resumed run asks nothing twice
remote            requests to a server during training; an outage is not an error
selection         chooses the rollouts to keep
progress          progress of a collection of rollouts
"""
