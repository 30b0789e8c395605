"""Asks a model a question and shows attempt 1, what is said to it, and attempt 2 with its new words marked.

    python chat.py outputs/score-gsm8k                                  # a run: its newest adapter
    python chat.py outputs/score-gsm8k/best --compare                   # an adapter, and then the base's answers
    python chat.py models/corrector                                     # what export.py wrote
    python chat.py --config configs/gsm8k.yaml                          # the base, before anything is trained
    python chat.py outputs/sft/final --config configs/gsm8k.yaml        # what supervised fine-tuning made
    python chat.py outputs/score-gsm8k --once "How many days are in 3 weeks?" --temperature 0.7     # prints JSON
    python chat.py outputs/score-gsm8k --url http://localhost:8000/v1 --model corrector     # a server that has it

Prompts, budgets, feedback and sampler are those of training. A question fills the column of `prompts.user`; for several
columns type JSON or a=1 b=2. With the right answer, as held-out rows have it, answers are judged; without it nothing is
said that needs a verdict. A server reads attempt 1 as text again, not as the tokens that were sampled.

`:row 12` asks a held-out row, counted from 0; `:again` takes another seed; `:greedy`, `:temperature 0.7`, `:help`.
Ctrl-C stops an answer; `:quit`, Ctrl-D, or Ctrl-C between answers ends.

Exit codes: 0 finished, 2 config, weights or question, 3 numbers, 4 memory, 5 sandbox, 6 the server, 7 a reward.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import contextlib
import difflib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from judge.worker import shown
from lib.core.config import ScoreConfig, Server, check_launcher, parser
from lib.core.errors import FINISHED, ApiError, ConfigError, UserError, run_script
from lib.rewards.judge import Verdict, prepare
from lib.run.results import named_weights

UNJUDGED = Verdict(0.0, {}, False, "", scored=False)
MARKS = ("\x1b[1;32m", "\x1b[0m") if sys.stdout.isatty() and "NO_COLOR" not in os.environ else ("[+", "+]")
HELP = "a question, or :row N, :again, :greedy, :temperature T, :help, :quit"


def main() -> int:
    """Loads the model, then answers one question as JSON, or as many as are typed."""
    args, config, adapter = command_line()
    prepare(config, note)
    with contextlib.ExitStack() as stack:
        chat = Conversation(config, args.temperature, stack)
        if args.url and getattr(chat.prompts, "loop", None):
            raise ConfigError("--url: a server does not see this config's tools: leave it out, to load the model here")
        write = served(chat, args) if args.url else local(chat, adapter)
        writers = {"trained" if adapter else "model": write}
        if args.compare:
            writers["base"] = partial(write, is_base=True)
        if args.once is None:
            converse(chat, writers)
            return FINISHED
        row = chat.row_of(args.once)
        turns = {name: list(chat.turns(row, writer)) for name, writer in writers.items()}
        print(json.dumps({"temperature": chat.temperature, "seed": chat.seed, **turns}, ensure_ascii=False))
    return FINISHED


def note(text: str) -> None:
    """Prints what is no answer."""
    print(text, file=sys.stderr, flush=True)


class Conversation:
    """A run's prompts and judge, and how the next answer is sampled."""

    def __init__(self, config: Any, temperature: float, stack: contextlib.ExitStack):
        self.config, self.temperature, self.stack = config, temperature, stack
        self.seed = config.eval.seed
        self.prompts: Any = None  # set by what loads the tokenizer

    @cached_property
    def data(self) -> tuple[Any, Any]:
        """Loads rows and judge, when a question first needs them."""
        from lib.rl.task import load_data

        return load_data(self.config)

    def row_of(self, text: str) -> dict[str, Any]:
        """Returns the row that a typed question, JSON, a=1 b=2, or `:row N` means. Raises ConfigError."""
        from lib.rl.prompts import columns_of

        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()
        if match := re.fullmatch(r":row\s+(\d+)", text):
            rows = self.data[0].test
            if int(match[1]) >= len(rows):
                raise ConfigError(f"{text}: there are {len(rows)} held-out rows, counted from 0")
            return rows[int(match[1])]
        if not text or text.startswith(":row"):
            raise ConfigError(f"'{text}' asks nothing: type a question, or :row N with the number of a held-out row")
        prompts, row = self.config.prompts, {}
        field = getattr(prompts, "messages_field", None)
        columns = [field] if field else list(dict.fromkeys(columns_of(prompts.user)))
        with contextlib.suppress(ValueError, RecursionError):
            row = json.loads(text) if text.startswith("{") else {}
        if len(columns) == 1 and columns[0] not in row:
            row = {columns[0]: [{"role": "user", "content": text}] if field else text}
        elif not row:
            names = "|".join(map(re.escape, filter(None, [*columns, self.config.dataset.target_field])))
            row = dict(re.findall(rf"\b({names})=(.*?)(?=\s+(?:{names})=|\Z)", text, re.DOTALL))
        if missing := [name for name in columns if name not in row]:
            pairs, example = " ".join(f"{name}=..." for name in columns), json.dumps(dict.fromkeys(columns, "..."))
            raise ConfigError(f"the question lacks {', '.join(missing)}: type {pairs}, or JSON: {example}")
        return row

    def turns(self, row: dict[str, Any], write: Callable) -> Iterator[dict[str, Any]]:
        """Yields each turn of the chat about a row: what was asked, and what `write` answered."""
        from lib.rl.corrections import UNSEEN
        from lib.rl.prompts import JudgedAnswer
        from lib.rl.reviews import role_of
        from lib.text.templates import with_system

        config, prompts, target = self.config, self.prompts, self.config.dataset.target_field
        judge = self.data[1] if target in row else None
        settings: Any = config.prompts
        unseen = UNSEEN[getattr(settings, "history", "full")]
        is_oracles = isinstance(config, ScoreConfig) and "verdict" in (settings.feedback, settings.stop)
        if judge is None and (is_oracles or getattr(settings, "feedback", "") == "tests"):
            note(f"the question has no {target}, so it is asked without the feedback that needs a verdict")
            config, prompts = config.without_feedback(), prompts.without_feedback()
        prompt, (key, most) = prompts.prompt(row), config.prompt_limit
        messages = with_system(prompts.messages(row), settings.system)
        for remark in prompts.outside.notes([("", [message["content"] for message in messages])]):
            note(remark.replace("in the data ", "").replace(" (1 rows, first )", ""))
        if len(prompt.ids) > most:
            raise ConfigError(f"the question has {len(prompt.ids):,} tokens, more than {key} = {most}: shorten it")
        question, messages, budgets = prompt.question, prompts.outside.harmless(messages), config.eval_budgets
        for number, budget in enumerate(budgets, start=1):
            completion, text = write(prompt, messages, budget)
            if prompt.review:
                verdict = prompt.review.verdict(completion, text)
            else:
                verdict = UNJUDGED
                if judge:
                    verdict = judge([prompts.judged(text)], [row], [prompt.question], [completion.finished])[0]
            yield {
                "turn": f"{role_of(prompt.review)}{prompt.attempt}", "asked": question, "text": text,
                "right": verdict.match if judge and verdict.scored else None, "finished": completion.finished,
            }  # fmt: skip
            if number == len(budgets):
                return
            (following,) = prompts.after([JudgedAnswer(prompt, completion, text, verdict)])
            if following is None:
                return
            question = following.feedback or settings.self_correction
            if getattr(settings, "feedback", "") == "self" and prompts.feedback:
                question = prompts.feedback.ask if following.review else prompts.feedback.then
            seen = unseen.sub("", text).strip() if unseen else text
            messages = [
                *messages,
                {"role": "assistant", "content": seen},
                {"role": prompts.follows_as, "content": question},
            ]
            prompt = following


def local(chat: Conversation, adapter: Path | None) -> Callable:
    """Loads the weights; returns the function that writes an answer in this process, as in training."""
    from engine import Decoding, Turn
    from lib.generators.native import generate
    from lib.model.loading import attach, load_base, start_backend
    from lib.model.policy import Policy, stop_ids
    from lib.rl.task import load_prompts
    from lib.run.adapter_files import load_adapter

    settings, backend = chat.config.model, start_backend(chat.config.model)
    base, tokenizer = load_base(settings, backend)
    chat.prompts = load_prompts(chat.config, tokenizer)
    policy = Policy(attach(base, settings, backend, chat.config.seed), 1.0, backend)
    if adapter:
        load_adapter(policy.model, adapter, settings.name)
    decoding = partial(Decoding, stop_ids=stop_ids(policy.language_model, tokenizer), pad_id=tokenizer.pad_token_id)

    def write(prompt: Any, _: Any, budget: int, is_base: bool = adapter is None) -> tuple[Any, str]:
        how = decoding(chat.temperature, rows=1, columns=len(prompt.ids) + budget, seed=chat.seed)
        path = (0,) * prompt.turn
        with policy.reference_mode() if is_base else contextlib.nullcontext():
            completion = generate(policy, {path: Turn(prompt.ids, budget)}, how)[(*path, 0)]
        return completion, chat.prompts.text(completion)

    return write


def served(chat: Conversation, args: argparse.Namespace) -> Callable:
    """Loads the tokenizer and connects; returns the function that asks a server for an answer."""
    from engine import Completion
    from lib.generators.protocol import Reply, Request
    from lib.generators.remote import Remote
    from lib.model.loading import load_skeleton
    from lib.rl.task import load_prompts

    tokenizer = load_skeleton(chat.config.model)[1]
    chat.prompts = load_prompts(chat.config, tokenizer)
    kwargs = chat.config.model.chat_template_kwargs
    server = Server(
        base_url=args.url, model=args.model, api_key_env=args.api_key_env, max_retries=1,
        extra_body={"chat_template_kwargs": kwargs} if kwargs else {},
    )  # fmt: skip
    folder = Path(chat.stack.enter_context(tempfile.TemporaryDirectory()))
    remote = chat.stack.enter_context(Remote("chat", server, folder / "replies.jsonl", note))

    def write(_: Any, messages: list[dict], budget: int) -> tuple[Any, str]:
        (reply,) = remote.answers(remote.ask([Request(messages, budget, chat.temperature, chat.seed)]))
        if not isinstance(reply, Reply):
            raise ApiError(f"--url {args.url}: {reply}")
        text = reply.written("<think>", "</think>")
        ids = tokenizer(text, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id] * reply.finished
        return Completion(ids, [0.0] * len(ids), reply.finished), text

    return write


def converse(chat: Conversation, writers: dict[str, Callable]) -> None:
    """Answers what is typed until the end of it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    row = None
    print(HELP)
    while True:
        try:
            text = input("\n> ").strip()
        except (EOFError, KeyboardInterrupt):
            text = ":quit"
        command, _, value = text.partition(" ")
        try:
            if command == ":quit":
                return print("ended")
            if command in (":greedy", ":temperature"):
                chat.temperature = temperature(value if command == ":temperature" else "0")
                print(f"temperature {chat.temperature:g}")
            elif command == ":again" and row is not None:
                chat.seed += 1
                show(chat, row, writers)
            elif command.startswith(":") and command != ":row":
                print(HELP if command == ":help" else f"{command} is no command here: {HELP}")
            else:
                row = chat.row_of(text)
                show(chat, row, writers)
        except KeyboardInterrupt:
            print("\nstopped")
        except (UserError, argparse.ArgumentTypeError) as error:
            print(f"error: {error}")


def show(chat: Conversation, row: dict[str, Any], writers: dict[str, Callable]) -> None:
    """Prints the chat about a row, each turn as soon as it is written."""
    for name, write in writers.items():
        before: dict[str, str] = {}
        for turn in chat.turns(row, write):
            # a terminal would obey control characters
            question, text = ("\n".join(map(shown, turn[key].split("\n"))) for key in ("asked", "text"))
            role = turn["turn"].rstrip("0123456789")
            facts = [name, turn["turn"], *{True: ["right"], False: ["wrong"]}.get(turn["right"], [])]
            facts += ["cut at its budget"] * (not turn["finished"]) + ["unchanged"] * (before.get(role) == text)
            print(f"\nuser: {question}\n{', '.join(facts)}: {marked(before.get(role), text)}", flush=True)
            before[role] = text


def marked(before: str | None, text: str) -> str:
    """Returns a text with the words marked that an earlier one does not have in their place."""
    old, new = (re.findall(r"\w+|\s+|[^\w\s]", part) for part in (text if before is None else before, text))
    matches = difflib.SequenceMatcher(None, old, new, autojunk=False)
    parts = ((kind, "".join(new[start:end])) for kind, _, _, start, end in matches.get_opcodes())
    return "".join(part if kind == "equal" or not part.strip() else part.join(MARKS) for kind, part in parts)


def temperature(text: str) -> float:
    """Reads a temperature. Raises ArgumentTypeError for anything but a number from 0 on."""
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", text):
        raise argparse.ArgumentTypeError(f"got '{text}', expected a temperature, a number of at least 0")
    return float(text)


def command_line() -> tuple[argparse.Namespace, Any, Path | None]:
    """Returns the options, the config with overrides, and the adapter. Raises ConfigError for any mistake."""
    options = parser(__doc__, smoke=False, required=False)
    options.add_argument("--once", metavar="QUESTION", help="answer one question, as JSON on standard output")
    options.add_argument("--compare", action="store_true", help="the base's answers, too")
    options.add_argument("--temperature", type=temperature, default=0.0, metavar="T", help="default: 0, greedy")
    options.add_argument("--url", help="a server with OpenAI's API that has the model")
    options.add_argument("--model", metavar="NAME", help="the model's name there")
    options.add_argument("--api-key-env", metavar="VARIABLE", help="the environment variable with the server's key")
    args = options.parse_intermixed_args()
    check_launcher()
    config, adapter = named_weights(args)
    if bool(args.url) != bool(args.model):
        raise ConfigError("--url and --model go together: give the address, and the model's name there")
    if args.compare and (args.url or not adapter):
        raise ConfigError("--compare switches the adapter of a run off: name a run or an adapter, and no --url")
    return args, config.model_copy(update={"distill": None}), adapter


if __name__ == "__main__":
    run_script(main)
