"""One contender of benchmarks/step.py, in a process of its own: a full training step for each line on standard input.

Answers are lines of JSON on what was standard output at the start; whatever a library prints goes to standard error.

    ours    lib.rl.score.ScoreRun on a config, by the calls of train.py's loop, stage II; where a case has no second
            attempts, lib.play.gspo.GspoRun by those of rl_train_gspo_selfplay.py
    generate  transformers' `generate` with the adapter, where a case has no second attempts; trains nothing
    trl     trl.GRPOTrainer on as many completions, in one turn
"""

import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.case import Case, saved_case
from benchmarks.usage import forget_peak, held_mib, peak_mib, seconds

ROOT = Path(__file__).resolve().parent.parent
RATE, BETA, ALPHA = 1e-5, 0.01, 10.0


class Meter:
    """Waits for the parent, measures a step, and tells the parent about it."""

    def __init__(self, answers):
        self._answers = answers
        self._held = 0.0

    def ready(self) -> None:
        """Reports that set-up is over: memory held now does not count as the step's."""
        gc.collect()
        self._held = held_mib()
        self._tell({"ready": True})

    def begin(self) -> None:
        """Waits for a line, then starts timing the step. Exits where the parent has left."""
        if not sys.stdin.readline():
            raise SystemExit
        forget_peak()
        self.start = seconds()

    def end(self, rollout: float, completions: int, tokens: int) -> None:
        """Reports that the step is over; `rollout` seconds of it were sampling and judging."""
        total = seconds() - self.start
        peak = peak_mib() - self._held
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()  # the other contenders need the memory
        self._tell({"total": total, "rollout": rollout, "update": total - rollout, "peak": peak,
                    "completions": completions, "tokens": tokens})  # fmt: skip

    def _tell(self, answer: dict) -> None:
        self._answers.write(json.dumps(answer) + "\n")
        self._answers.flush()


def parity(predictions: list[str], **_) -> list[float]:
    """Returns rewards of 0 or 1 that cost nothing and differ within a group."""
    return [float(sum(map(ord, text)) % 2) for text in predictions]


def touch(model: torch.nn.Module) -> None:
    """Reads every weight once, so that pages mapped from the file do not count as memory of the first step."""
    for parameter in model.parameters():
        parameter.detach().sum()


def base(folder: Path) -> tuple:
    """Loads the model without adapter, and its tokenizer."""
    from lib.core.config import Model
    from lib.model.loading import load_base

    dtype = saved_case(folder).dtype
    return load_base(Model(name=str(folder / "base"), backend="plain", dtype=dtype), "plain")


def end_by(model: torch.nn.Module, lengths: Iterator[int], end: int) -> None:
    """Makes `model.generate` write the id `end` when a row has reached its length, and never before."""
    from transformers import LogitsProcessor

    class Ends(LogitsProcessor):
        def __init__(self):
            self.step = 0

        def __call__(self, input_ids, scores):
            if not self.step:
                self.lengths = torch.tensor([next(lengths) for _ in input_ids], device=scores.device)
            self.step += 1
            ends = self.lengths == self.step
            scores[:, end] = torch.where(ends, float("inf"), float("-inf"))  # in place: this is not what is measured
            return scores.clamp_(max=1e4)

    generate = type(model).generate
    model.generate = lambda *args, **kwargs: generate(model, *args, logits_processor=[Ends()], **kwargs)


def chats(folder: Path, tokenizer) -> list[str]:
    """Returns the first prompts of all rows, as text."""
    rows = [json.loads(line) for line in (folder / "data.jsonl").read_text(encoding="utf-8").splitlines()]
    return [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": row["question"]}], tokenize=False, add_generation_prompt=True
        )
        for row in rows
    ]


def config_of(case: Case, folder: Path):
    """Returns a demo's config with this case's model, data and sizes: GSPO where a case has no second attempts."""
    from lib.core.config import ScoreConfig, SelfPlayConfig, load

    columns = case.prompt_tokens + case.length
    common = [
        f"output_dir={folder}", "run_name=run", f"model.name={folder / 'base'}", f"model.dtype={case.dtype}",
        f"dataset.name={folder / 'data.jsonl'}", "dataset.test_split_size=1", "reward.fn=parity",
        "reward.answer_extractor=identity", f"train.micro_batch_tokens={case.micro_batch_tokens}",
        "train.checkpoint_every=0", "eval.every_steps=0", f"optimizer.learning_rate={RATE}",
    ]  # fmt: skip
    if not case.revisions:
        return load(SelfPlayConfig, ROOT / "configs" / "tiny_code.yaml", [
            *common, "opponent=null", f"model.max_seq_length={columns}", "prompts.user='{question}'",
            f"generation.max_prompt_length={case.prompt_tokens}", f"generation.max_new_tokens={case.length}",
            f"train.batch_size={case.prompts}", f"train.group_size={case.attempts}", "train.minibatches=1",
            "train.steps=1000000",
        ])  # fmt: skip
    return load(ScoreConfig, ROOT / "configs" / "tiny_arithmetic.yaml", [
        *common, f"model.max_seq_length={columns + 16 + case.length}",
        f"generation.max_prompt_length_attempt1={case.prompt_tokens}",
        f"generation.max_prompt_length_attempt2={columns + 16}",
        f"generation.max_new_tokens_attempt1={case.length}", f"generation.max_new_tokens_attempt2={case.length}",
        f"train.stage2_batch_size={case.prompts}", f"train.attempts_per_prompt={case.attempts}",
        f"train.revisions_per_attempt={case.revisions}", "train.stage2_steps=1000000", f"train.beta1={BETA}",
        f"train.alpha={ALPHA}",
    ])  # fmt: skip


def of_given_lengths(case: Case, policy) -> None:
    """Gives all later completions the lengths of the case, and no end token."""
    from engine import sampling
    from lib.rl import task

    never = policy.language_model.config.vocab_size
    task.stop_ids = lambda *_: frozenset({never})
    lengths = {2: case.drawn(case.firsts), 3: case.drawn(case.seconds)}  # by the length of a path
    new = sampling._Rows.new

    def limited(members, *args):
        rows = new(members, *args)
        limits = [next(lengths[len(member.path)]) for member in members]
        rows.limits.copy_(torch.tensor(limits, dtype=torch.long))
        return rows

    sampling._Rows.new = limited
    touch(policy)


def ours(case: Case, folder: Path, meter: Meter) -> None:
    """Runs the loop of train.py, stage II, or that of self-play."""
    from lib.core.registry import rewards
    from lib.play.gspo import GspoRun
    from lib.rl.score import ScoreRun
    from lib.rl.task import load_task

    rewards.register("parity")(parity)
    made = load_task(config_of(case, folder))
    of_given_lengths(case, made.policy)
    run = ScoreRun(made, start_stage=2) if case.revisions else GspoRun(made)
    run.progress.due = None
    with run.open():
        stage = next(run.session.remaining()) if case.revisions else None
        meter.ready()
        while not run.session.interrupted():
            meter.begin()
            sampled = run.sample(stage) if case.revisions else run.play()
            rollout = seconds() - meter.start
            if case.revisions:
                credit = run.credit(stage, sampled)
                run.update(stage, sampled, credit)
                written = [answer.completion.ids for node in credit.nodes for answer in node.group.answers]
            else:
                run.update(sampled, run.credit(sampled, run.assist(sampled)))
                written = [answer.completion.ids for game in sampled for answer in game.group.answers]
            meter.end(rollout, len(written), sum(map(len, written)))


def generate(case: Case, folder: Path, meter: Meter) -> None:
    """Samples by `generate` for each line, and does nothing with it."""
    from lib.core.config import Lora, Model
    from lib.model.loading import attach_tuner

    language_model, tokenizer = base(folder)
    model = attach_tuner(language_model, Lora(), Model(name=str(folder / "base")), "plain", seed=0).eval()
    touch(model)
    end, pad = tokenizer.eos_token_id, tokenizer.pad_token_id
    end_by(language_model, case.drawn(case.firsts), end)
    prompts = tokenizer(chats(folder, tokenizer))["input_ids"]
    rows = max(1, (case.at_once or case.firsts) // case.attempts)
    meter.ready()
    while True:
        meter.begin()
        prompts = prompts[case.prompts :] + prompts[: case.prompts]
        written = []
        for start in range(0, case.prompts, rows):
            part = {"input_ids": prompts[start : min(start + rows, case.prompts)]}
            batch = tokenizer.pad(part, padding_side="left", return_tensors="pt").to(model.device)
            with torch.no_grad():
                answers = model.generate(
                    **batch, num_return_sequences=case.attempts, do_sample=True, temperature=1.0, top_k=0,
                    max_new_tokens=case.length, eos_token_id=end, pad_token_id=pad,
                )[:, batch["input_ids"].shape[1] :].tolist()  # fmt: skip
            written += [ids[: ids.index(end) + 1] if end in ids else ids for ids in answers]
        meter.end(seconds() - meter.start, len(written), sum(map(len, written)))


def largest_divisor(number: int, limit: int) -> int:
    """Returns the largest divisor of `number` that is at most `limit`; at least 1."""
    return next(size for size in range(max(1, min(number, limit)), 0, -1) if number % size == 0)


def trl(case: Case, folder: Path, meter: Meter) -> None:
    """Runs `GRPOTrainer.train`, which waits for a line before each step."""
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    from lib.core.config import Lora

    class Timed(GRPOTrainer):
        """Records how long sampling and judging took, and what was sampled."""

        def forget(self) -> None:
            self.rollout_seconds, self.written = 0.0, []

        def _generate(self, prompts):
            start = seconds()
            result = super()._generate(prompts)
            self.rollout_seconds += seconds() - start
            self.written += result[1]
            return result

        def _calculate_rewards(self, *args):
            start = seconds()
            result = super()._calculate_rewards(*args)
            self.rollout_seconds += seconds() - start
            return result

    class Steps(TrainerCallback):
        def on_step_begin(self, *_args, **_kwargs):
            trainer.forget()
            meter.begin()

        def on_step_end(self, *_args, **_kwargs):
            meter.end(trainer.rollout_seconds, len(trainer.written), sum(map(len, trainer.written)))

    model, tokenizer = base(folder)
    end_by(model, case.drawn(case.firsts, case.seconds), tokenizer.eos_token_id)
    touch(model)
    # TRL requires whole groups per call of `generate`, and calls and micro-batches of equal size
    group = case.attempts * (1 + case.revisions)
    generated = group * largest_divisor(case.prompts, (case.at_once or case.completions) // group)
    rows = largest_divisor(generated, case.trl_rows)
    args = GRPOConfig(
        output_dir=str(folder / "trl"), report_to="none", logging_strategy="no", save_strategy="no", disable_tqdm=True,
        dataloader_pin_memory=False, max_steps=1_000_000, learning_rate=RATE, lr_scheduler_type="constant",
        per_device_train_batch_size=rows, gradient_accumulation_steps=case.completions // rows,
        steps_per_generation=generated // rows, num_generations=group,
        max_completion_length=case.length, temperature=1.0,
        **({"beta": BETA} if case.revisions else {"importance_sampling_level": "sequence", "loss_type": "grpo"}),
        gradient_checkpointing=False, use_vllm=False, bf16=case.dtype == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
    )  # fmt: skip
    # a LoraConfig: TRL would copy the adapter of a PeftModel, and run the copy as the reference
    lora = LoraConfig(r=Lora().r, lora_alpha=Lora().alpha, target_modules=list(Lora().targets), task_type="CAUSAL_LM")
    trainer = Timed(
        model=model, args=args, processing_class=tokenizer, peft_config=lora, callbacks=[Steps()],
        train_dataset=Dataset.from_dict({"prompt": chats(folder, tokenizer)}),
        reward_funcs=lambda completions, **_: parity(completions),
    )  # fmt: skip
    meter.ready()
    trainer.train()


def main() -> None:
    """Runs a contender: `contenders.py NAME FOLDER`, as benchmarks/step.py calls it."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    {"ours": ours, "generate": generate, "trl": trl}[name](saved_case(folder), folder, Meter(answers))


if __name__ == "__main__":
    main()
