"""The most likely tokens at the places of a text, from a server: two dialects of the completions API.

prompt_logprobs  vLLM's: {"<id>": {"logprob": ..., "decoded_token": ...}} for each token of the prompt
echo             the API's own, while it had `echo` (vLLM, SGLang and others): `top_logprobs` of each echoed token; its
                 tokens must be told as `token_id:<id>`, since a token's text does not always say which token it is

A server that has neither answers with the text that it writes and nothing else: that is the end of the run.
"""

from typing import Any

from lib.core.errors import ApiError
from lib.generators.protocol import Scores, Scoring, Usage

BYTES_PER_ENTRY = 200  # of JSON for a token at a place, at most


def body_of(scoring: Scoring, model: str) -> dict[str, Any]:
    """Returns the request; one token is written, because most servers write at least that."""
    body: dict[str, Any] = {"model": model, "prompt": scoring.ids, "max_tokens": 1, "temperature": 1.0}
    if scoring.offers == "prompt_logprobs":
        return body | {"prompt_logprobs": scoring.top}
    return body | {"echo": True, "logprobs": scoring.top, "return_tokens_as_token_ids": True}


def largest_reply(scoring: Scoring) -> int:
    """Returns the most bytes of the answer to a request."""
    return 1_000_000 + len(scoring.ids) * (scoring.top + 2) * BYTES_PER_ENTRY


def scores_in(data: dict[str, Any], scoring: Scoring) -> Scores:
    """Reads an answer. Raises ApiError if it has no log-probs of the prompt, ValueError and others if it is broken."""
    choice, usage, offers = data["choices"][0], data.get("usage") or {}, scoring.offers
    places = choice.get("prompt_logprobs") if offers == "prompt_logprobs" else _echoed(choice.get("logprobs"))
    if not places:
        other = "echo" if offers == "prompt_logprobs" else "prompt_logprobs"
        raise ApiError(
            f"endpoint: this server tells no log-probs of a text that it is given (distill.offers: {offers}); try "
            f"{other}, take a server that does, such as vLLM, or load the teacher by distill.model"
        )
    texts, ids, logps = [], [], []
    for place in range(scoring.start, len(scoring.ids)):
        known = {int(token): about for token, about in places[place].items()}
        own = known[scoring.ids[place]]  # it is always among them; KeyError: the server has read another text
        texts.append(own.get("decoded_token"))
        ranked = sorted(known, key=lambda token: -known[token]["logprob"])
        ids.append(ranked)
        logps.append([float(known[token]["logprob"]) for token in ranked])
    return Scores(ids, logps, texts, Usage(int(usage.get("prompt_tokens") or 0), 0))


def _echoed(logprobs: dict[str, Any] | None) -> list[dict[str, dict]]:
    """Returns the log-probs of an echoed text in the form of `prompt_logprobs`; [] if there are none."""
    if not logprobs or not logprobs.get("top_logprobs") or len(logprobs["tokens"]) < 2:
        return []
    if not str(logprobs["tokens"][0]).startswith("token_id:"):
        raise ApiError(
            "endpoint: this server echoes tokens by their text alone, and several tokens may have one text; take one "
            "that knows return_tokens_as_token_ids, such as vLLM, or load the teacher by distill.model"
        )
    found = []
    for token, own, top in zip(logprobs["tokens"], logprobs["token_logprobs"], logprobs["top_logprobs"], strict=True):
        every = {token: own, **(top or {})}  # of the first token nothing is known
        found.append({name.removeprefix("token_id:"): {"logprob": value} for name, value in every.items()})
    return found
