#!/usr/bin/env bash
# Trains on a rented GPU: starts deploy/sky.yaml, follows it, brings outputs/ back, and gives the machine back.
#
#   deploy/sky.sh configs/gsm8k.yaml                                      # train.py
#   SCRIPT=rl_train_gspo_selfplay.py deploy/sky.sh configs/math.yaml hub.repo_id=me/my-run
#   CLUSTER=mine KEEP=1 deploy/sky.sh configs/gsm8k.yaml                  # keep the machine; it stops after an idle hour
#
# It needs SkyPilot in an environment of its own (pip install "skypilot[aws]", or your cloud's name; then `sky check`).
# HF_TOKEN and WANDB_API_KEY are handed over as secrets where they are set. The exit code is that of the run; outputs/
# comes back whatever it is, so that --resume can go on here or there.
set -euo pipefail

cd "$(dirname "$0")/.."
if [ $# -lt 1 ] || [ ! -f "$1" ]; then
    echo "error: got '${1:-nothing}', expected a config, such as configs/gsm8k.yaml; see the head of deploy/sky.sh" >&2
    exit 2
fi
config=$1
shift
cluster=${CLUSTER:-rematch}
secrets=()
for name in HF_TOKEN WANDB_API_KEY; do
    if [ -n "${!name:-}" ]; then secrets+=(--secret "$name"); fi
done

bring_back() {
    local code=$?
    trap - EXIT
    mkdir -p outputs
    rsync -az "$cluster:sky_workdir/outputs/" outputs/ || echo "error: outputs/ is still on $cluster: rsync again" >&2
    if [ -z "${KEEP:-}" ] && [ "$code" = 0 ]; then
        sky down -y "$cluster"
    else
        echo "$cluster is kept, and stops when idle; give it back: sky down $cluster"
    fi
    exit "$code"
}

trap bring_back EXIT
sky launch -y -c "$cluster" --idle-minutes-to-autostop 60 deploy/sky.yaml \
    --env "SCRIPT=${SCRIPT:-train.py}" --env "CONFIG=$config" --env "OVERRIDES=$*" "${secrets[@]}"
