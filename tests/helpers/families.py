"""Chat templates in the manner of several families, each with a tokenizer of its kind, made here of a few sentences."""

import copy
import json
import re

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from lib.text.labels import Labeller

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
LLAMA3 = (
    "{{ bos_token }}{% if tools %}{{ '<|start_header_id|>system<|end_header_id|>\\n\\nTools: ' + (tools | tojson) + "
    "'<|eot_id|>' }}{% endif %}"
    "{% for m in messages %}"
    "{{ '<|start_header_id|>' + ('ipython' if m.role == 'tool' else m.role) + '<|end_header_id|>\\n\\n' }}"
    "{% if 'tool_calls' in m %}{% if m.tool_calls | length != 1 %}{{ raise_exception('one call at once') }}{% endif %}"
    "{% set f = m.tool_calls[0].function %}"
    "{{ '{\"name\": \"' + f.name + '\", \"parameters\": ' + (f.arguments | tojson) + '}' }}"
    "{% else %}{{ m.content | trim }}{% endif %}{{ '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}"
    "{% if m.role not in ['user', 'assistant'] %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else 'user') + '\\n' + m.content | trim + "
    "'<end_of_turn>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\\n' }}{% endif %}"
)
MISTRAL = (
    "{{ bos_token }}{% set ns = namespace(system='') %}"
    "{% if tools %}{{ '[AVAILABLE_TOOLS] ' + (tools | tojson) + '[/AVAILABLE_TOOLS]' }}{% endif %}"
    "{% for m in messages %}{% if m.role == 'system' %}{% set ns.system = m.content + '\\n\\n' %}"
    "{% elif m.role == 'user' %}{{ '[INST] ' + ns.system + m.content + ' [/INST]' }}{% set ns.system = '' %}"
    "{% elif m.role == 'tool' %}{{ '[TOOL_RESULTS] ' + m.content + '[/TOOL_RESULTS]' }}"
    "{% elif m.tool_calls is defined %}{% set ns.calls = [] %}"
    "{% for c in m.tool_calls %}{% set ns.calls = ns.calls + [c.function] %}{% endfor %}"
    "{{ '[TOOL_CALLS] ' + (ns.calls | tojson) + eos_token }}"
    "{% else %}{{ ' ' + m.content + eos_token }}{% endif %}{% endfor %}"
)
# deletes the thoughts before the last question, and writes an empty block where the last answer has none
QWEN3 = (
    "{% if tools %}{{ '<|im_start|>system\\n# Tools\\n' + (tools | tojson) + '<|im_end|>\\n' }}{% endif %}"
    "{% set ns = namespace(last=-1) %}"
    "{% for m in messages %}{% if m.role == 'user' %}{% set ns.last = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}"
    "{% if m.role == 'assistant' %}{{ '<|im_start|>assistant\\n' }}"
    "{% if loop.index0 > ns.last and (loop.last or m.reasoning_content) %}"
    "{{ '<think>\\n' + (m.reasoning_content or '') + '\\n</think>\\n\\n' }}{% endif %}{{ m.content }}"
    "{% for c in m.tool_calls or [] %}"
    "{{ '\\n<tool_call>\\n' + ({'name': c.function.name, 'arguments': c.function.arguments} | tojson) + "
    "'\\n</tool_call>' }}{% endfor %}{{ '<|im_end|>\\n' }}"
    "{% elif m.role == 'tool' %}"
    "{{ '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}"
    "{% else %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}"
    "{% if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}"
    "{% endif %}"
)
# ends a turn by one token and the whole chat by another
PHI = (
    "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}"
)

SENTENCES = [
    "The user asks the assistant for the weather in Paris.\n\nIt is sunny there, and the system is a tool.\n",
    '{"name": "get_weather", "arguments": {"city": "Paris"}} Hello there! I think that the answer is 42.\n\n\n',
    "Ein Übermut tut selten gut; été, naïve. Tools and parameters: INST /INST im_start im_end eot_id model\n",
]


def byte_level(special, prefix_space=False):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=prefix_space)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(SENTENCES * 5, trainer)
    return finished(tokenizer, special)


def sentence_piece(special, dummy_space=True):
    """Spaces are a character of their own, and unknown characters fall back to bytes."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    if dummy_space:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    else:
        tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        + ([decoders.Strip(" ", 1, 0)] if dummy_space else [])
    )
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=450, special_tokens=pieces, show_progress=False, max_token_length=12)
    tokenizer.train_from_iterator([word for text in SENTENCES * 5 for word in re.findall(r"\s*\S+", text)], trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = []  # bytes are no special tokens
    return finished(Tokenizer.from_str(json.dumps(state)), special)


def finished(tokenizer, special):
    bos, eos, *others = special
    added = [AddedToken(token, special=token[1] not in "t/", normalized=False) for token in (bos, eos, *others)]
    for token in added:
        (tokenizer.add_special_tokens if token.special else tokenizer.add_tokens)([token])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=bos, eos_token=eos, pad_token=eos, clean_up_tokenization_spaces=False
    )


MARKS = {  # bos, eos, and the others
    "chatml": ["<|begin|>", "<|endoftext|>", "<|im_start|>", "<|im_end|>"],
    "llama3": ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"],
    "gemma": ["<bos>", "<eos>", "<start_of_turn>", "<end_of_turn>"],
    "mistral": ["<s>", "</s>", "[INST]", "[/INST]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"],
    "phi": ["<s>", "<|endoftext|>", "<|user|>", "<|assistant|>", "<|system|>", "<|end|>"],
}
MARKS["qwen3"] = [*MARKS["chatml"], "<think>", "</think>", "<tool_call>", "</tool_call>"]


def call(name="get_weather", **arguments):
    return {"type": "function", "function": {"name": name, "arguments": arguments}}


def as_json(calls, wrap):
    return "".join(wrap(call["function"]) for call in calls)


def chatml_turn(message):
    return message["content"] + "<|im_end|>"


def llama3_turn(message):
    called = as_json(
        message.get("tool_calls", []),
        lambda f: f'{{"name": "{f["name"]}", "parameters": {json.dumps(f["arguments"], ensure_ascii=False)}}}',
    )
    return (called or message["content"].strip()) + "<|eot_id|>"


def mistral_turn(message):
    if "tool_calls" in message:
        calls = [call["function"] for call in message["tool_calls"]]
        return f"[TOOL_CALLS] {json.dumps(calls, ensure_ascii=False)}</s>"
    return f" {message['content']}</s>"


def qwen3_turn(message):
    calls = as_json(
        message.get("tool_calls", []),
        lambda f: f"\n<tool_call>\n{json.dumps(f, ensure_ascii=False)}\n</tool_call>",
    )
    thoughts = message.get("reasoning_content", "")
    return f"<think>\n{thoughts}\n</think>\n\n{message['content']}{calls}<|im_end|>"


FAMILIES = {  # template, tokenizer, which tokens the model says end an answer, what is trained of a message
    "chatml": (CHATML, byte_level(MARKS["chatml"]), ["<|im_end|>"], chatml_turn),
    "chatml with a prefix space": (CHATML, byte_level(MARKS["chatml"], True), ["<|im_end|>"], chatml_turn),
    "chatml with pieces": (CHATML, sentence_piece(MARKS["chatml"]), ["<|im_end|>"], chatml_turn),
    "llama3": (LLAMA3, byte_level(MARKS["llama3"]), ["<|end_of_text|>"], llama3_turn),
    "gemma": (GEMMA, sentence_piece(MARKS["gemma"], False), ["<eos>", "<end_of_turn>"],
              lambda message: message["content"].strip() + "<end_of_turn>"),
    "mistral": (MISTRAL, sentence_piece(MARKS["mistral"]), ["</s>"], mistral_turn),
    "mistral with bytes": (MISTRAL, byte_level(MARKS["mistral"]), ["</s>"], mistral_turn),
    "qwen3": (QWEN3, byte_level(MARKS["qwen3"]), ["<|im_end|>", "<|endoftext|>"], qwen3_turn),
    "phi": (PHI, byte_level(MARKS["phi"]), ["<|end|>", "<|endoftext|>"],
            lambda message: message["content"] + "<|end|>"),
}  # fmt: skip
for _template, _tokenizer, *_ in FAMILIES.values():
    _tokenizer.chat_template = _template
KNOW_TOOLS = ["llama3", "mistral", "mistral with bytes", "qwen3"]
KNOW_SYSTEM = [name for name in FAMILIES if name != "gemma"]
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tells the weather.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
]


def labeller_of(name, template=None, **kwargs):
    _, tokenizer, stops, _ = FAMILIES[name]
    if template is not None:
        tokenizer = copy.copy(tokenizer)
        tokenizer.chat_template = template
    return Labeller(tokenizer, frozenset(tokenizer.convert_tokens_to_ids(stops)), kwargs)
