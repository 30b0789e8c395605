"""What is under deploy/, checked by the tool of its kind where it is installed: requirements-dev.txt has all but one.

SkyPilot has requirements of its own that do not go together with ours: with `pip install skypilot` in another
environment, run this file by that environment's pytest, too, and its parser reads deploy/sky.yaml.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest
import yaml
from helpers.ports import free_port

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
SKY = yaml.safe_load((DEPLOY / "sky.yaml").read_text(encoding="utf-8"))


def checked(tool, *arguments, text=None):
    """Runs a linter of this environment, which must find nothing."""
    found = shutil.which(tool, path=os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    if found is None:
        pytest.skip(f"{tool} is not installed: pip install -r requirements-dev.txt")
    result = subprocess.run([found, *map(str, arguments)], input=text, capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("script", [*sorted(DEPLOY.glob("*.sh")), ROOT / ".ci/run"], ids=lambda path: path.name)
def test_shell_scripts(script):
    assert script.stat().st_mode & 0o111
    checked("shellcheck", script)


def test_rented_machines_have_what_a_gpu_needs():
    """Triton compiles against the headers of Python; slabs that come and go would leave holes in the GPU's memory."""
    assert {"build-essential", "python3-dev"} <= set(SKY["setup"].split())
    expandable = "PYTORCH_CUDA_ALLOC_CONF"
    assert SKY["envs"][expandable] == "expandable_segments:True"
    assert all(f"{expandable}=" in (DEPLOY / name).read_text(encoding="utf-8") for name in ("Dockerfile", "slurm.sh"))


@pytest.mark.parametrize("part", ["setup", "run"])
def test_the_shell_in_the_sky_file(part):
    variables = "".join(f': "${{{name}:=}}"\n' for name in {**SKY["envs"], **SKY["secrets"]})
    checked("shellcheck", "--shell", "bash", "-", text=variables + SKY[part])


def test_the_container_file():
    checked("hadolint", DEPLOY / "Dockerfile")


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_workflows(workflow):
    checked("zizmor", "--offline", "--quiet", "--no-progress", workflow)
    checked("check-jsonschema", "--builtin-schema", "vendor.github-workflows", workflow)


def test_the_sky_file_by_its_own_parser():
    sky = pytest.importorskip("sky", reason="SkyPilot is in an environment of its own")
    task = sky.Task.from_yaml(str(DEPLOY / "sky.yaml"))
    assert task.name == "rematch" and {name for resource in task.resources for name in resource.accelerators} >= {
        "A100",
        "H100",
    }


def test_every_file_that_they_name_is_there():
    pattern = re.compile(r"(?<![\w.-])\w[\w./-]*\.(?:py|txt|yaml|sh)\b")
    for path in [*DEPLOY.glob("*"), *WORKFLOWS]:
        for name in pattern.findall(path.read_text(encoding="utf-8")):
            assert (ROOT / name).exists(), f"{path.name} names {name}"


def test_the_container_installs_what_make_setup_does():
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    gpu = text.partition("FROM base AS cuda")[2]
    for name in ("requirements.txt", "requirements-dev.txt", "requirements-web.txt"):
        assert f"-r {name}" in gpu
    declared = re.search('requires-python = ">=([0-9.]+),<([0-9.]+)"', (ROOT / "pyproject.toml").read_text()).groups()
    first, python, end = (
        tuple(map(int, each.split(".")))
        for each in (declared[0], re.search("PYTHON=([0-9.]+)", text).group(1), declared[1])
    )
    assert first <= python < end
    pythons = yaml.safe_load(WORKFLOWS[0].read_text())["jobs"]["whole"]["strategy"]["matrix"]["python"]
    assert pythons == [f"3.{minor}" for minor in range(first[1], end[1] - 1)]  # 3.14 is accepted, but has not been run


@pytest.fixture
def cluster(tmp_path):
    """A folder with Slurm's commands, of one node and without a queue, and an environment that trains nothing."""
    (tmp_path / "bin").mkdir()
    (tmp_path / ".venv/bin").mkdir(parents=True)
    for name, text in {
        "bin/srun": 'shift; exec "$@"',
        "bin/scontrol": '[ "$1" = show ] && echo node7 || echo "scontrol $*" >> told.txt',
        ".venv/bin/python": "exit 0",
        ".venv/bin/torchrun": 'echo "torchrun $*" >> told.txt\ntrap "echo saved >> told.txt; exit 1" TERM\n'
        'if [ -f slow ]; then touch begun; while :; do sleep 0.02; done; fi\nexit "$(cat code)"',
    }.items():
        (tmp_path / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "task.yaml").touch()
    (tmp_path / "code").write_text("0")
    return tmp_path


def submitted(cluster):
    slurm = {"SLURM_JOB_ID": "12", "SLURM_JOB_NODELIST": "node[7-8]", "SLURM_NNODES": "2", "SLURM_GPUS_ON_NODE": "4"}
    path = os.pathsep.join([str(cluster / "bin"), os.environ["PATH"]])
    command = [DEPLOY / "slurm.sh", "task.yaml", "train.alpha=5"]
    return subprocess.Popen(command, cwd=cluster, env={**os.environ, **slurm, "PATH": path}, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("code", [0, 3])
def test_a_slurm_job_ends_with_the_code_of_its_run(cluster, code):
    (cluster / "code").write_text(str(code))
    assert submitted(cluster).wait(30) == code
    assert (cluster / "told.txt").read_text().splitlines() == [
        "torchrun --nnodes 2 --nproc_per_node 4 --rdzv_backend c10d --rdzv_endpoint node7:20012 --rdzv_id 12 "
        "train.py --config task.yaml --resume train.alpha=5"
    ]


def test_a_slurm_job_whose_time_is_over_saves_and_is_queued_again(cluster):
    (cluster / "slow").touch()
    job = submitted(cluster)
    while not (cluster / "begun").exists():
        assert job.poll() is None
    job.send_signal(signal.SIGTERM)
    job.wait(30)
    assert (cluster / "told.txt").read_text().splitlines()[1:] == ["saved", "scontrol requeue 12"]


VLLM = """
import http.server, os, sys
with open("told.txt", "a") as file:
    print("vllm", os.environ["CUDA_VISIBLE_DEVICES"], *sys.argv[1:], file=file)
if os.path.exists("broken"):
    sys.exit("no such model")
class Healthy(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.path == "/health" else 404)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(sys.argv[sys.argv.index("--port") + 1])), Healthy).serve_forever()
"""


def with_vllm(cluster, *words, config="configs/gsm8k.yaml", gpus=4, port=0):
    """Runs deploy/vllm.sh in that folder, whose Python is the real one, with a server that has no model."""
    for name in ("lib", "configs", "judge", "engine", "reward_function.py"):
        (cluster / name).symlink_to(ROOT / name)
    (cluster / "server.py").write_text(VLLM)
    (cluster / ".venv/bin/python").write_text(f'#!/usr/bin/env bash\nexec {sys.executable} "$@"\n')
    (cluster / "bin/vllm").write_text(f'#!/usr/bin/env bash\nexec {sys.executable} server.py "$@"\n')
    (cluster / "bin/vllm").chmod(0o755)
    environment = {**os.environ, "GPUS": str(gpus), "PORT": str(port or free_port()), "VLLM": "bin/vllm"}
    command = [DEPLOY / "vllm.sh", config, *words]
    return environment["PORT"], subprocess.Popen(
        command, cwd=cluster, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )


@pytest.mark.parametrize("code", [0, 3])
def test_one_server_and_trainers_on_the_other_cards(cluster, monkeypatch, code):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7,9")
    (cluster / "code").write_text(str(code))
    port, job = with_vllm(cluster, "train.alpha=5", "model.revision=main")
    assert job.wait(120) == code, job.stderr.read()
    server, trainers = (cluster / "told.txt").read_text().splitlines()
    assert server == (
        "vllm 4 serve Qwen/Qwen3-0.6B --dtype bfloat16 --max-lora-rank 16 --max-model-len 2560 --revision main "
        f"--served-model-name base --host 127.0.0.1 --port {port} --generation-config vllm "
        "--logprobs-mode processed_logprobs --enable-lora --max-loras 1 --max-cpu-loras 4"
    )
    assert trainers == (
        "torchrun --standalone --nproc_per_node 3 train.py --config configs/gsm8k.yaml --resume train.alpha=5 "
        f"model.revision=main generation.engine=vllm generation.vllm.url=http://127.0.0.1:{port}"
    )
    with pytest.raises(OSError):
        urllib.request.urlopen(f"http://127.0.0.1:{port}/health")  # the server has ended


def test_trainers_next_to_a_server_save_when_they_are_told_to_leave(cluster):
    (cluster / "slow").touch()
    _, job = with_vllm(cluster)
    while not (cluster / "begun").exists():
        assert job.poll() is None, job.stderr.read()
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == 1
    assert (cluster / "told.txt").read_text().splitlines()[2:] == ["saved"]


def test_a_server_that_does_not_start_and_a_config_that_it_cannot_serve_are_named(cluster):
    (cluster / "broken").touch()
    _, job = with_vllm(cluster)
    assert job.wait(120) == 1 and job.stderr.read().endswith("vllm-server.log ends with:\nno such model\n")
    command = [DEPLOY / "vllm.sh", "configs/gsm8k.yaml", "model.load_in_4bit=true"]
    refused = subprocess.run(command, cwd=cluster, env={**os.environ, "GPUS": "2"}, capture_output=True, text=True)
    assert refused.returncode == 2 and "weights than those of 4 bits" in refused.stderr
    alone = subprocess.run(command, cwd=cluster, env={**os.environ, "GPUS": "1"}, capture_output=True, text=True)
    assert alone.returncode == 2 and "got 1 card, expected 2 or more" in alone.stderr
    assert len((cluster / "told.txt").read_text().splitlines()) == 1


@pytest.mark.parametrize("script", ["sky.sh", "slurm.sh", "vllm.sh"])
def test_without_a_config_they_say_what_they_need(script):
    result = subprocess.run([DEPLOY / script, "nowhere.yaml"], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert result.returncode == 2 and "got 'nowhere.yaml', expected a config" in result.stderr
