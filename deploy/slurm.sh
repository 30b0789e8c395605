#!/usr/bin/env bash
# Trains on a Slurm cluster, on one node or several, and goes on by itself when its time is over.
#
#   sbatch deploy/slurm.sh configs/gsm8k.yaml                                    # train.py on one card of one node
#   sbatch --gpus-per-node 8 deploy/slurm.sh configs/gsm8k.yaml                  # on eight
#   sbatch --nodes 2 --gpus-per-node 8 deploy/slurm.sh configs/gsm8k.yaml train.checkpoint_every=10
#   SCRIPT=rl_train_gspo_selfplay.py sbatch deploy/slurm.sh configs/selfplay_code.yaml
#
# Run it from the root of the repository, on a disk that all nodes see, after `make setup` on a node like them. Account,
# partition and the rest are options of sbatch. Five minutes before the end every process gets SIGTERM, saves a
# checkpoint and leaves; the job is then queued again, and resumes on as many processes.
#SBATCH --job-name=rematch
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task=16
#SBATCH --time=12:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=rematch-%j.log
set -euo pipefail

if [ $# -lt 1 ] || [ ! -f "$1" ]; then
    echo "error: got '${1:-nothing}', expected a config, such as configs/gsm8k.yaml; see the head of deploy/slurm.sh" >&2
    exit 2
fi
config=$1
shift
script=${SCRIPT:-train.py}
export PYTORCH_CUDA_ALLOC_CONF=${PYTORCH_CUDA_ALLOC_CONF:-expandable_segments:True} TOKENIZERS_PARALLELISM=false
# the nodes of many clusters reach no hub: fetch model and data before, on one that does
export HF_HUB_OFFLINE=${HF_HUB_OFFLINE:-1}

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
port=$((20000 + SLURM_JOB_ID % 20000))
.venv/bin/python doctor.py --config "$config"

interrupted=
trap 'interrupted=1; kill -TERM "$launched" 2> /dev/null || true' TERM # srun hands it on to every process
srun --kill-on-bad-exit=1 .venv/bin/torchrun \
    --nnodes "$SLURM_NNODES" --nproc_per_node "${SLURM_GPUS_ON_NODE:-1}" \
    --rdzv_backend c10d --rdzv_endpoint "$head:$port" --rdzv_id "$SLURM_JOB_ID" \
    "$script" --config "$config" --resume "$@" &
launched=$!
code=0
wait "$launched" || code=$?
if [ -n "$interrupted" ]; then
    wait "$launched" || true # the first wait ended with the signal; a checkpoint takes a moment
    echo "the time is over: queued again, and resumes"
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
