"""Whoever writes text.

`native` takes token ids, a `Turn`, and gives a `Completion`, because what is trained must be scored token by token.
`openai`, and a local model in `lib/local.py`, take a chat, a `Request`, and give a `Reply`.

protocol           what generators are given and give
native, openai     the shelf: mates do not know each other
"""
