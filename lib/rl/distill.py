"""On-policy distillation: the KL to a teacher at each token of what the policy itself wrote.

The policy samples, and a teacher reads the same tokens, after the policy's prompt or after one that shows it more
(`distill.shown`, a teacher's hint). At each place the loss is the KL between the two next-token distributions, in the
direction of `distill.direction`, which tells every token something, where a reward is one number for all of them:
on-policy distillation (Agarwal et al. 2024, arXiv 2306.13649), and with the policy as its own teacher OPSD (2601.18734)
and SDPO (2601.20802).

Departure: the KL is over the whole vocabulary, not log p - log q of the sampled token, which estimates it.
"""

from dataclasses import replace
from typing import Any

import torch
from accelerate import Accelerator

from engine import TeacherStates
from lib.core.clock import phase
from lib.core.config import RLConfig
from lib.model.policy import Policy
from lib.rewards.judge import MOST_EXPLAINED, Judge
from lib.rl.batching import MicroBatch, PackedSequence, Span, micro_batches
from lib.rl.prompts import columns_of, filled
from lib.rl.teachers import InitialPolicy, load_teacher
from lib.rl.tree import Answer, Node
from lib.run.distributed import collect


class Distiller:
    """The teacher of a run: `begin` prepares it for the answers of a step, `says` scores a micro-batch."""

    def __init__(self, config: RLConfig, policy: Policy, renderer: Any, judge: Judge):
        self.settings, self.most = config.distill, config.model.max_seq_length
        self.policy, self.renderer, self.judge = policy, renderer, judge
        self.teacher = load_teacher(config.teacher_model, policy, renderer.tokenizer)
        shown = columns_of(self.settings.shown or "", "distill.shown")
        self._shows_sibling, self._shows_feedback = "sibling" in shown, "feedback" in shown
        self.hinted: dict[int, list[int]] = {}  # by number of a prompt: its ids with a hint, for the step to come
        self.wanted = self.distilled = 0  # answers of the step
        self._answers: dict[int, list[int]] = {}  # by number of an answer: its tokens,
        self._before: dict[int, list[int]] = {}  # and what the teacher reads before them,
        self._differ: set[int] = set()  # which is not what the policy reads before these

    @property
    def moving(self) -> dict[str, Any]:
        """Returns its parts that a checkpoint saves."""
        return {"distill": self.teacher} if isinstance(self.teacher, InitialPolicy) else {}

    def numbers(self, accelerator: Accelerator) -> dict[str, float]:
        """Returns the share of a step's answers that are distilled, of those that might be, over all processes."""
        wanted, distilled = (sum(collect([number], accelerator)) for number in (self.wanted, self.distilled))
        return {"distilled": distilled / max(1, wanted)}

    # -- a step

    def begin(self, nodes: list[Node], wanted: list[bool]) -> list[float]:
        """Prepares the reading of a step's answers; returns the weight of each one's KL, by number.

        It is 0 where an answer is not `wanted`, where something to show the teacher is missing, or where it would read
        more than model.max_seq_length tokens.
        """
        answers = [(node, number, answer) for node in nodes
                   for number, answer in zip(node.numbers, node.group.answers, strict=True)]  # fmt: skip
        chosen = [entry for entry in answers if wanted[entry[1]]]
        roots = {node.tree: node for node in nodes if node.parent is None}
        feedback = self._feedback([entry for entry in chosen if entry[0].is_attempt])
        self._answers, self._before, self._differ = {}, {}, set()
        for node, number, answer in chosen:
            before = self._context(node, answer, roots[node.tree], nodes, feedback.get(number, ""))
            if before is None or len(before) + len(answer.completion.ids) > self.most:
                continue
            self._answers[number], self._before[number] = answer.completion.ids, before
            if before != node.group.prompt.ids:
                self._differ.add(number)
        self.hinted = {}
        self.wanted, self.distilled = len(chosen), len(self._before)
        return [float(number in self._before) for _, number, _ in answers]

    def _feedback(self, entries: list[tuple[Node, int, Answer]]) -> dict[int, str]:
        """Returns the reward's explanation of each answer, by number, if the teacher is shown it."""
        if not self._shows_feedback:
            return {}
        feedback: dict[int, str] = {}
        for start in range(0, len(entries), MOST_EXPLAINED):
            some = entries[start : start + MOST_EXPLAINED]
            texts, rows = [answer.text for *_, answer in some], [node.group.prompt.row for node, *_ in some]
            with phase("reward"):
                explained = self.judge.explain(texts, rows)
            for (_, number, _), about in zip(some, explained, strict=True):
                feedback[number] = "\n".join(f"{name}: {value}" for name, value in about.items())
        return feedback

    def _context(self, node: Node, answer: Answer, root: Node, nodes: list[Node], feedback: str) -> list[int] | None:
        """Returns the ids that the teacher reads before an answer; None where something to show is missing.

        In place of the tree's first prompt it reads another one; what follows in the policy's prompt, such as an
        earlier attempt, it reads as the policy did.
        """
        ids, first, prompt = node.group.prompt.ids, root.group.prompt.ids, root.group.prompt
        is_hinted = prompt.number in self.hinted and not prompt.hint
        if self.settings.shown is None and not is_hinted:
            return ids if self.settings.model else None
        if ids[: len(first)] != first:
            return None  # the middle of an earlier attempt was left out, or it was rendered anew
        if is_hinted:
            return self.hinted[prompt.number] + ids[len(first) :]
        values = {**prompt.row, "question": prompt.question, "feedback": feedback}
        if self._shows_sibling:
            values["sibling"] = _sibling(node, answer, nodes)
        if (self._shows_sibling and not values["sibling"]) or (self._shows_feedback and not feedback):
            return None
        return self.renderer.reworded(prompt, filled(self.settings.shown, values, "distill.shown")) + ids[len(first) :]

    @torch.no_grad()
    def says(self, batch: MicroBatch) -> TeacherStates | None:
        """Returns the teacher's distributions at the N tokens of a micro-batch; None if it teaches none of them.

        What it says where it does not teach has no meaning.
        """
        numbers = [number for number in batch.answer.unique().tolist() if number in self._before]
        if not numbers:
            return None
        with phase("reference"):
            if self._differ.isdisjoint(numbers) and (batch.inputs.branch is None or self.teacher.takes_branches):
                states = self.teacher.reads(batch.inputs)
            else:
                states = self._reads_apart(batch, numbers)
        return replace(states, is_forward=self.settings.direction == "forward")

    def _reads_apart(self, batch: MicroBatch, numbers: list[int]) -> TeacherStates:
        """Reads answers in sequences of their own, and returns what it says in the order of a micro-batch."""
        items, pad_id = [], self.renderer.tokenizer.pad_token_id
        for number in numbers:
            before, ids = self._before[number], self._answers[number]
            whole = before + ids[:-1]
            items.append(PackedSequence(whole, len(whole), (), (Span(ids, len(before) - 1, len(before), number),)))
        begins = (batch.token == 0).nonzero()[:, 0]
        begin = dict(zip(batch.answer[begins].tolist(), begins.tolist(), strict=True))
        parts, at = [], []
        for part in micro_batches(items, batch.inputs.ids.numel(), pad_id, batch.answer.device):
            states = self.teacher.reads(part.inputs)
            parts.append(states.hidden)
            first = torch.tensor([begin[number] for number in part.answer.tolist()], device=part.token.device)
            at.append(first + part.token)
        hidden = parts[0].new_zeros(len(batch.answer), parts[0].shape[1])
        hidden[torch.cat(at)] = torch.cat(parts)
        return TeacherStates(hidden, states.head)


def _sibling(node: Node, answer: Answer, nodes: list[Node]) -> str:
    """Returns another answer in the tree that is right, one to the same prompt if there is one; else ""."""
    nearby = [peer for peer in nodes if peer.tree == node.tree and peer.is_attempt]
    nearby.sort(key=lambda peer: peer is not node)
    right = [other.text for peer in nearby for other, match in zip(peer.group.answers, peer.group.matches, strict=True)
             if match and other is not answer]  # fmt: skip
    return right[0] if right else ""
