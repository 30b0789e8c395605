"""Chats as labelled tokens of one model, none longer than asked, with a line for whatever is cut, split or lost."""

import hashlib
from array import array
from itertools import islice
from statistics import median
from typing import TYPE_CHECKING, Any

from lib.core.config import SFTConfig
from lib.core.errors import ConfigError
from lib.text.chats import Chat
from lib.text.labels import Example, Labeller, Passage

if TYPE_CHECKING:  # it imports torch
    from lib.core.console import Screen


def examples_of(
    name: str, chats: list[Chat], model: Any, tokenizer: Any, config: SFTConfig, screen: "Screen"
) -> list[Example]:
    """Tokenizes and labels the chats, none longer than `train.max_length`; reports what is cut, split or left out."""
    from lib.model import scratch
    from lib.model.policy import stop_ids

    if not chats:
        return []
    labeller = Labeller(tokenizer, stop_ids(model, tokenizer), config.model.chat_template_kwargs)
    labeller.outside.refuse_controls({"prompts.system": config.prompts.system})
    parts = [labeller.passages(chat) for chat in chats]
    passages = [passage for part in parts for passage in part]
    if config.model.from_scratch:
        scratch.refuse_unknown(tokenizer, (passage.text for passage in passages))
    untrained = (
        (chat.where, [message["content"] for number, message in enumerate(chat.messages) if number not in chat.turns])
        for chat in chats
    )
    for note in labeller.outside.notes(untrained):
        screen.warn(f"{name}: {note}")
    whole = list(labeller.encode(passages))
    limit, how = config.train.max_length, config.train.truncation
    fitting = [fitted for example in whole if (fitted := example.within(limit, cut=how == "cut"))]
    result = [example for example in fitting if example.trained]
    long = sum(len(example.ids) > limit for example in whole)
    if not any(example.within(limit, cut=False) for example in whole):
        raise ConfigError(
            f"train.max_length: all {long} examples {name} have more than {limit} tokens, so no end would be learned: "
            "raise it"
        )
    if not result:
        raise ConfigError(
            f"model.name: its tokenizer has no token for what is trained of the {len(fitting)} examples {name}: give "
            "another model"
        )
    screen.say(f"{name}: {len(chats)} chats, {_sizes(whole, result)}")
    if any(len(part) > 1 for part in parts):
        screen.say(f"{name}: {_repeated(parts, whole)}")
    if labeller.left_out:
        what = " and ".join(f"{kind} in {number} turns" for kind, number in labeller.left_out.items())
        screen.warn(
            f"{name}: the chat template does not write {what}, so these are not learned; a template that knows them "
            "would keep them"
        )
    if len(result) < len(fitting):
        screen.warn(f"{name}: {len(fitting) - len(result)} examples are lost, since no token of theirs is trained")
    if long:
        lost = sum(len(example.trained) for example in whole) - sum(len(example.trained) for example in fitting)
        screen.warn(
            f"{name}: {long} of {len(whole)} examples have more than train.max_length = {limit} tokens: "
            + ("they are cut" if how == "cut" else "the turns beyond are not trained")
            + f"; {lost} turns and {len(whole) - len(fitting)} examples are lost"
        )
    if changed := sum(not example.is_exact for example in result):
        screen.warn(
            f"{name}: in {changed} examples the tokenizer changes the text of a trained turn, such as its spaces"
        )
    return result


def _sizes(whole: list[Example], result: list[Example]) -> str:
    """Describes the lengths of examples, and how much of those left is trained."""
    lengths = [len(example.ids) for example in whole]
    trained = sum(end - start for example in result for start, end in example.trained)
    return (
        f"{min(lengths)} to {max(lengths)} tokens, median {median(lengths):.0f}; "
        f"{trained} of {sum(len(example.ids) for example in result)} are trained"
    )


def _repeated(parts: list[list[Passage]], whole: list[Example]) -> str:
    """Describes the chats of several passages (`parts`), and what it costs to read their beginnings again."""
    several, lengths = [part for part in parts if len(part) > 1], [len(example.ids) for example in whole]
    sizes = iter(lengths)
    extra = sum(sum(sorted(islice(sizes, len(part)))[:-1]) for part in parts)
    return (
        f"{len(several)} chats became {sum(map(len, several))} examples, because the chat template writes "
        f"a turn differently once others follow it; that costs {extra} tokens, {extra / sum(lengths):.0%} of all"
    )


def fingerprint_of(*parts: list[Example]) -> str:
    """Hashes the examples in order: a resumed run must see the same ones, so the chat template counts too."""
    digest = hashlib.sha256()
    for number, part in enumerate(parts):
        for example in part:
            spans = (border for span in example.trained for border in span)
            digest.update(array("q", [number, len(example.ids), *example.ids, *spans]).tobytes())
    return digest.hexdigest()[:16]
