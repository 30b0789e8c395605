import pytest

from engine import Completion
from lib.core.config import FromScratch, Generation, Prompts
from lib.core.errors import ConfigError
from lib.model.scratch import build_tokenizer
from lib.rl.corrections import CorrectionPrompts
from lib.rl.prompts import columns_of

# In the style of four families; each ends a turn with the tokenizer's own <|im_end|> where the family has its own.
CHATML = """\
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and not loop.last and '</think>' in m.content -%}
{{ m.content.split('</think>')[-1].lstrip('\\n') }}
{%- else -%}{{ m.content }}{%- endif -%}<|im_end|>
{% endfor -%}
{%- if add_generation_prompt -%}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking -%}<think>

</think>

{% endif -%}{%- endif -%}"""
LLAMA = (
    "<|bos|>{% for m in messages %}<|start|>{{ m.role }}<|end|>\n\n{{ m.content | trim }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant<|end|>\n\n{% endif %}"
)
GEMMA = (
    "<|bos|>{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{% for m in messages %}<|turn|>{{ 'model' if m.role == 'assistant' else m.role }}\n"
    "{{ m.content | trim }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|turn|>model\n{% endif %}"
)
MISTRAL = (
    "<|bos|>{% for m in messages %}{% if m.role == 'assistant' %} {{ m.content | trim }}<|im_end|>"
    "{% else %}[INST] {{ m.content }} [/INST]{% endif %}{% endfor %}"
)
FAMILIES = {"chatml": CHATML, "llama": LLAMA, "gemma": GEMMA, "mistral": MISTRAL}
AFTER_ATTEMPT_1 = {
    "chatml": "<|im_end|>\n<|im_start|>user\nAgain!<|im_end|>\n<|im_start|>assistant\n",
    "llama": "<|im_end|><|start|>user<|end|>\n\nAgain!<|im_end|><|start|>assistant<|end|>\n\n",
    "gemma": "<|im_end|>\n<|turn|>user\nAgain!<|im_end|>\n<|turn|>model\n",
    "mistral": "<|im_end|>[INST] Again! [/INST]",
}
SCRATCH = FromScratch(
    architecture={"model_type": "qwen3"},
    characters="\n !'*+-./0123456789=?[]{}" + "".join(map(chr, [*range(65, 91), *range(97, 123)])),
    special_tokens=["<|bos|>", "<|im_start|>", "<|start|>", "<|end|>", "<|turn|>", "<think>", "</think>"],
)
LIMITS = Generation(
    max_prompt_length_attempt1=80, max_prompt_length_attempt2=300, max_new_tokens_attempt1=9, max_new_tokens_attempt2=9
)
ROW = {"question": "1+1?", "answer": "2"}
families = pytest.mark.parametrize("family", FAMILIES)


def prompts_of(family="chatml", limits=LIMITS, template_kwargs=None, **settings):
    tokenizer = build_tokenizer(SCRATCH, FAMILIES.get(family, family))
    settings = {"user": "{question}", "self_correction": "Again!", **settings}
    return CorrectionPrompts(tokenizer, Prompts(**settings), limits, template_kwargs)


def completion(prompts, text, finished=True):
    ids = prompts.tokenizer(text + "<|im_end|>" * finished)["input_ids"]
    return Completion(ids, [0.0] * len(ids), finished)


def decoded(prompts, ids):
    return prompts.tokenizer.decode(ids)


@families
def test_attempt_2_continues_the_sampled_tokens(family):
    prompts = prompts_of(family)
    first = prompts.prompt(ROW).ids
    attempt1 = completion(prompts, "<think>\n1 and 1\n</think>\n\n 3")
    second = prompts.next_prompt(prompts.prompt(ROW), attempt1)
    assert (second.continues, second.cut) == (True, False)
    assert second.ids[: len(first) + len(attempt1.ids)] == first + attempt1.ids
    assert decoded(prompts, second.ids[len(first) + len(attempt1.ids) - 1 :]) == AFTER_ATTEMPT_1[family]


@families
def test_a_truncated_attempt_is_closed_before_the_instruction(family):
    prompts = prompts_of(family)
    first = prompts.prompt(ROW).ids
    second = prompts.next_prompt(prompts.prompt(ROW), completion(prompts, "<think> 1 a", finished=False))
    assert second.continues
    assert decoded(prompts, second.ids[len(first) :]) == "<think> 1 a" + AFTER_ATTEMPT_1[family]


@families
def test_an_attempt_that_ended_by_another_token_is_closed_too(family):
    """Several tokens may end an answer, but the template's own is the one that ends a turn."""
    prompts = prompts_of(family)
    other_end = prompts.tokenizer.convert_tokens_to_ids("<|end|>")
    attempt1 = Completion([*completion(prompts, "3", finished=False).ids, other_end], [0.0] * 2, finished=True)
    second = prompts.next_prompt(prompts.prompt(ROW), attempt1)
    assert decoded(prompts, second.ids).endswith("3<|end|>" + AFTER_ATTEMPT_1[family])


@families
@pytest.mark.parametrize("finished", [True, False])
def test_a_cut_context_keeps_both_prompts_whole(family, finished):
    prompts = prompts_of(family)
    first = prompts.prompt(ROW).ids
    long = completion(prompts, "0123456789" * 40, finished)
    second = prompts.next_prompt(prompts.prompt(ROW), long)
    assert (second.continues, second.cut) == (False, True)
    assert len(second.ids) == 300
    assert second.ids[: len(first)] == first
    after = AFTER_ATTEMPT_1[family]
    assert decoded(prompts, second.ids).endswith(after)
    kept = decoded(prompts, second.ids[len(first) : 300 - len(prompts.retry_ids)])
    assert kept == ("0123456789" * 40)[: len(kept) // 2] + ("0123456789" * 40)[-(len(kept) - len(kept) // 2) :]


def test_a_context_that_fits_exactly_is_not_cut():
    prompts = prompts_of()
    first = prompts.prompt(ROW).ids
    room = 300 - len(first) - len(prompts.retry_ids)
    fits = completion(prompts, "1" * room, finished=False)
    assert prompts.next_prompt(prompts.prompt(ROW), fits).continues
    assert len(prompts.next_prompt(prompts.prompt(ROW), fits).ids) == 300
    assert prompts.next_prompt(prompts.prompt(ROW), completion(prompts, "1" * (room + 1), finished=False)).cut


REASONED = "<think>\n1 and 1\n</think>\n\n3"


@families
@pytest.mark.parametrize(
    ("history", "text", "expected"),
    [
        ("answer_only", REASONED, "3"),
        ("plain_text", REASONED, "1 and 1\n\n\n3"),
        ("answer_only", "<think>\n1 and", ""),
        ("answer_only", "1 and 1\n</think>\n\n3", "3"),  # a template that opens the block in the prompt
        ("answer_only", "so <think>1</think> 3", "so  3"),
        ("plain_text", "3", "3"),
    ],
)
def test_what_attempt_2_sees_of_attempt_1(family, history, text, expected):
    prompts = prompts_of(family, history=history)
    first = prompts.prompt(ROW).ids
    second = prompts.next_prompt(prompts.prompt(ROW), completion(prompts, text))
    assert (second.continues, second.cut) == (False, False)
    opening = " " if family == "mistral" else ""
    assert decoded(prompts, second.ids) == decoded(prompts, first) + opening + expected + AFTER_ATTEMPT_1[family]


@pytest.mark.parametrize("history", ["answer_only", "plain_text"])
def test_a_cut_text_keeps_the_instruction_as_well(history):
    prompts = prompts_of(history=history)
    second = prompts.next_prompt(prompts.prompt(ROW), completion(prompts, "0123456789" * 40))
    assert second.cut
    assert len(second.ids) == 300
    assert decoded(prompts, second.ids).startswith(decoded(prompts, prompts.prompt(ROW).ids) + "0123")
    assert decoded(prompts, second.ids).endswith("789" + AFTER_ATTEMPT_1["chatml"])


def test_the_template_gets_its_arguments():
    prompts = prompts_of(template_kwargs={"enable_thinking": False})
    ending = "<|im_start|>assistant\n<think>\n\n</think>\n\n"
    assert decoded(prompts, prompts.prompt(ROW).ids).endswith(ending)
    assert decoded(prompts, prompts.retry_ids).endswith(ending)


def test_a_system_prompt_stands_before_both():
    prompts = prompts_of(system="Be brief.")
    assert decoded(prompts, prompts.prompt(ROW).ids).startswith(
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n"
    )
    assert "brief" not in decoded(prompts, prompts.retry_ids)


def test_what_a_template_refuses_is_one_sentence():
    with pytest.raises(ConfigError, match=r"model\.chat_template: .*System role not supported"):
        prompts_of("gemma", system="Be brief.")


def test_the_note_tells_what_the_template_alone_would_have_dropped():
    assert "the chat template by itself would drop the reasoning" in prompts_of("chatml").history_note()
    assert "drop" not in prompts_of("llama").history_note()


def test_two_prompts_that_can_not_work_are_refused_at_once():
    with pytest.raises(ConfigError, match="leaves no room for attempt 1"):
        prompts_of(limits=LIMITS.model_copy(update={"max_prompt_length_attempt2": 100}))
    with pytest.raises(ConfigError, match=r"an instruction of \d+ tokens, prompts.feedback_tokens included: raise it"):
        prompts_of(feedback="verdict", limits=LIMITS.model_copy(update={"max_prompt_length_attempt2": 100}))
    forgets = "{{ messages[0].content }}{{ messages[-1].content }}"
    with pytest.raises(ConfigError, match="drops earlier assistant turns"):
        prompts_of(forgets)


def test_columns_of_a_user_template():
    assert columns_of("{a} of {b} {{c}}") == ["a", "b"]
    with pytest.raises(ConfigError, match="double a brace"):
        columns_of("{a")
    assert "{1+1?}" in decoded(prompts_of(), prompts_of(user="{{{question}}}").prompt(ROW).ids)
