"""The chats of a data set, to train on and held out; rollouts may be chosen by their reward and match."""

from collections import Counter

from lib.core.config import SFTDataset
from lib.core.errors import ConfigError
from lib.text.chats import Chat, as_chat, question_of
from lib.text.data import Place, load_splits
from lib.text.tables import Row
from lib.text.templates import system_notes

NOT_CHOSEN = "are not what dataset.min_reward and dataset.only_matches choose"


def load_chats(dataset: SFTDataset, system: str = "") -> tuple[str, list[Chat], list[Chat], list[str]]:
    """Returns the source of the rows, the chats to train on, those held out, and notes on what is left out and why."""
    train, left_out, seen = [], Counter(), set()

    def accepts(row: Row, place: Place) -> bool:
        """True if a row is trained on; if so, adds its chat to `train`."""
        reason = NOT_CHOSEN
        if is_chosen(row, dataset, str(place)):
            chat = as_chat(row, str(place), system)
            has_words = _has_words(chat)
            if has_words and not (dataset.distinct and chat.key() in seen):
                seen.add(chat.key())
                train.append(chat)
                return True
            empty = "have nothing in their turns" if chat.turns else "were cut off in their only turn"
            reason = "equal another one" if has_words else empty
        left_out[reason] += 1
        return False

    splits = load_splits(dataset, (), question_of, accepts)
    held_out = [
        chat
        for row, place in zip(splits.test, splits.test_places, strict=True)
        if is_chosen(row, dataset, str(place)) and _has_words(chat := as_chat(row, str(place), system))
    ]
    notes = [
        *splits.notes,
        *(f"{number} rows to train on were removed: they {why}" for why, number in left_out.items()),
        *system_notes((chat.messages for chat in train + held_out), system),
    ]
    if not train:
        key = "dataset.min_reward, dataset.only_matches" if left_out[NOT_CHOSEN] else "dataset.name"
        raise ConfigError(f"{key}: no row of {splits.source} is left to train on ({'; '.join(notes)}): give others")
    if cut_off := sum(chat.is_cut_off for chat in train):
        notes.append(f"in {cut_off} rows to train on the last turn is not trained, since it was cut off")
    return splits.source, train, held_out, notes


def _has_words(chat: Chat) -> bool:
    """True if a turn has text, reasoning or a tool call; of others only the end token would be trained."""
    keys = ("content", "reasoning_content", "reasoning", "thinking", "tool_calls")
    said = (chat.messages[turn].get(key) for turn in chat.turns for key in keys)
    return any(str(words or "").strip() for words in said)


def is_chosen(row: Row, dataset: SFTDataset, where: str) -> bool:
    """True if reward and match admit the row; null never does. Raises ConfigError where no judge wrote them."""
    for key, column, kind in (("min_reward", "reward", int | float), ("only_matches", "match", bool)):
        lowest = getattr(dataset, key)
        if lowest is None or lowest is False:
            continue
        value = row.get(column, "")
        if value is not None and (not isinstance(value, kind) or value != value):
            raise ConfigError(
                f"dataset.{key}: {where} has {f'{value!r} as' if column in row else 'no'} '{column}', expected what a "
                "judge says: give rollouts, as JSON lines, or remove the key"
            )
        if value is None or value < lowest:
            return False
    return True
