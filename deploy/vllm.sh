#!/usr/bin/env bash
# Trains on one machine, with a vLLM server on its first card and a trainer on each of the others.
#
#   deploy/vllm.sh configs/gsm8k.yaml
#   SCRIPT=rl_train_gspo_selfplay.py deploy/vllm.sh configs/selfplay_code.yaml train.checkpoint_every=10
#   GPUS=4 PORT=8001 VLLM=/opt/vllm/bin/vllm deploy/vllm.sh configs/gsm8k.yaml
#
# Run it from the root of the repository, after `make setup` and with vLLM in .venv-vllm (or where VLLM says). Model,
# length and rank of LoRA are read from the config. The server ends with the run, its output is in vllm-server.log. The
# exit code is that of the run, which resumes if it is started again. docs/engine.md says what such a run checks.
set -euo pipefail

if [ $# -lt 1 ] || [ ! -f "$1" ]; then
    echo "error: got '${1:-nothing}', expected a config, such as configs/gsm8k.yaml; see the head of deploy/vllm.sh" >&2
    exit 2
fi
config=$1
shift
script=${SCRIPT:-train.py}
IFS=, read -ra cards <<< "${CUDA_VISIBLE_DEVICES:-$(seq -s , 0 $((${GPUS:-$(nvidia-smi --list-gpus | wc -l)} - 1)))}"
cards=("${cards[@]:0:${GPUS:-${#cards[@]}}}")
gpus=${#cards[@]}
port=${PORT:-8000}
if [ "$gpus" -lt 2 ]; then
    echo "error: got $gpus card, expected 2 or more; on one card a run starts its own server: generation.engine=vllm" >&2
    exit 2
fi
if curl --silent --output /dev/null "http://127.0.0.1:$port/"; then
    echo "error: port $port is in use: give another one, PORT=$((port + 1)) $0 ..." >&2
    exit 2
fi
export PYTORCH_CUDA_ALLOC_CONF=${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True} TOKENIZERS_PARALLELISM=false
overrides=("$@" generation.engine=vllm "generation.vllm.url=http://127.0.0.1:$port")

# a mistake in the config ends it here; an assignment, since process substitution would hide the exit code
settings=$(
    PYTHONPATH=. .venv/bin/python - "$script" "$config" "${overrides[@]}" << 'PYTHON'
import sys
from pathlib import Path

import reward_function  # noqa: F401  registers rewards, yours too
from lib.core.config import ScoreConfig, SelfPlayConfig, load
from lib.core.errors import UserError
from lib.generators.vllm_server import RANKS

script, path, *overrides = sys.argv[1:]
try:
    config = load(ScoreConfig if script == "train.py" else SelfPlayConfig, Path(path), overrides)
except UserError as error:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(2)
model = config.model
words = [model.name, "--dtype", "bfloat16" if model.dtype == "auto" else model.dtype]
words += ["--max-lora-rank", next(size for size in RANKS if size >= min(model.adapters.lora.r, RANKS[-1]))]
words += ["--max-model-len", model.max_seq_length]
words += ["--revision", model.revision] if model.revision else []
words += ["--trust-remote-code"] if model.trust_remote_code else []
print(*words, sep="\n")
PYTHON
)
mapfile -t words <<< "$settings"

VLLM_ALLOW_RUNTIME_LORA_UPDATING=1 CUDA_VISIBLE_DEVICES=${cards[0]} "${VLLM:-.venv-vllm/bin/vllm}" serve "${words[@]}" \
    --served-model-name base --host 127.0.0.1 --port "$port" --generation-config vllm \
    --logprobs-mode processed_logprobs --enable-lora --max-loras 1 --max-cpu-loras 4 > vllm-server.log 2>&1 &
server=$!
trap 'kill "$server" 2> /dev/null || true' EXIT
until curl --silent --fail --output /dev/null "http://127.0.0.1:$port/health"; do
    if ! kill -0 "$server" 2> /dev/null; then
        echo "error: the server ended before it answered; vllm-server.log ends with:" >&2
        tail -n 5 vllm-server.log >&2
        exit 1
    fi
    sleep 1
done

CUDA_VISIBLE_DEVICES=$(IFS=, && echo "${cards[*]:1}") .venv/bin/torchrun --standalone --nproc_per_node $((gpus - 1)) \
    "$script" --config "$config" --resume "${overrides[@]}" &
launched=$!
trap 'kill -TERM "$launched" 2> /dev/null || true' TERM INT # every process saves a checkpoint and leaves
code=0
wait "$launched" || code=$?
while kill -0 "$launched" 2> /dev/null; do # a signal ended the wait
    code=0
    wait "$launched" || code=$?
done
exit "$code"
