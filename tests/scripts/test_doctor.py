"""doctor.py finds what is broken: packages that are missing, other, or crash, servers that refuse, read-only disks."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.hub import stand_in

import doctor
from lib.core.errors import ConfigError

ROOT = Path(__file__).parents[2]
TOKEN = "hf_this_is_told_to_nobody"


@pytest.fixture
def quick(monkeypatch):
    """Few imports, and no hub."""
    monkeypatch.setattr(doctor, "IMPORTED", ("yaml", "rich", "PyYAML"))  # only the second is a package and a module
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def by(found, what):
    return [finding for finding in found if finding.what == what]


def test_this_machine(quick, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["doctor.py"])
    code = doctor.main()
    told = capsys.readouterr().out
    lines = re.findall(r"^(\w+) +(ok|warn|FAIL)  (.+)$", told, re.MULTILINE)
    names = [what for what, _, _ in lines]
    assert list(dict.fromkeys(names)) == [
        "python",
        "packages",
        "imports",
        "devices",
        "memory",
        "disk",
        "sandbox",
        "hub",
    ]
    assert names.count("disk") == 3 and names.count("packages") == len([*ROOT.glob("requirements*.txt")])
    assert ("FAIL" in [status for _, status, _ in lines]) == (code == 1)
    assert re.search(r"^sandbox +(ok|warn) +R[1-4], ", told, re.MULTILINE)
    assert told.splitlines()[-1] == ", ".join(
        f"{[status for _, status, _ in lines].count(status)} {word}"
        for status, word in (("ok", "ok"), ("warn", "to look at"), ("FAIL", "to fix"))
    )


def test_with_nothing_installed_it_says_what_to_install(tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    bare = tmp_path / "bare/bin/python"
    result = subprocess.run([bare, ROOT / "doctor.py"], capture_output=True, text=True, env={"HF_HUB_OFFLINE": "1"})
    assert result.returncode == 1 and result.stderr == ""
    assert re.search(r"^packages +FAIL  requirements-cpu\.txt: missing: torch, tran", result.stdout, re.MULTILINE)
    assert f"->    {bare} -m pip install -r requirements-cpu.txt" in result.stdout
    assert "unknown without torch" in result.stdout and "none installed; they are optional" in result.stdout
    assert re.search(r"^sandbox +(ok|warn) +R[1-4], ", result.stdout, re.MULTILINE)  # which needs no package


@pytest.mark.parametrize(("minor", "status"), [(10, "FAIL"), (11, "ok"), (13, "ok"), (14, "warn"), (15, "FAIL")])
def test_the_python_versions(minor, status, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(sys, "version_info", (3, minor, 0, "final", 0))
        [python] = doctor.python()
    assert python.status == status and ("3.13" in python.fix) == (status != "ok")
    assert ("has not been run on 3.14" in python.found) == (minor == 14)


def test_a_package_that_raises_and_one_that_crashes_are_named_and_the_others_tried(tmp_path, monkeypatch):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise OSError('libcudart.so.12: cannot open shared object file')")
    (tmp_path / "numpy.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(doctor, "IMPORTED", ("rich", "numpy", "torch", "pydantic"))
    found = list(doctor.imports_and_devices())
    assert [finding.found for finding in by(found, "imports")] == [
        "numpy: the process ended with -11",
        "torch: libcudart.so.12: cannot open shared object file",
    ]
    assert all("pip install --force-reinstall --no-deps" in finding.fix for finding in by(found, "imports"))
    assert by(found, "devices")[0].found.startswith("unknown without torch")


def test_a_torch_that_does_not_see_the_gpu_of_the_driver_fails():
    driver = ["NVIDIA L4, 23034 MiB, 550.54"]
    built = doctor._devices(driver, {"cuda": None, "threads": 2, "gpus": []})
    assert built.status == "FAIL" and "torch none: it is a CPU build" in built.found and "index" in built.fix
    gpu = {"name": "NVIDIA T4", "memory": 16e9, "capability": [7, 5]}
    old = doctor._devices(driver, {"cuda": "12.8", "threads": 2, "gpus": [gpu]})
    assert old.status == "warn" and old.found == "NVIDIA T4, 16 GB, compute capability 7.5; CUDA 12.8"
    assert (
        doctor._devices(driver, {"cuda": "12.8", "threads": 2, "gpus": [gpu | {"capability": [9, 0]}]}).status == "ok"
    )


def test_versions_are_compared_with_the_pins(tmp_path, monkeypatch):
    monkeypatch.setattr(doctor, "ROOT", tmp_path)
    monkeypatch.setattr(doctor, "nvidia_gpus", lambda: [])
    (tmp_path / "requirements-cpu.txt").write_text(
        f"# a comment\nrich==0.1.0\nnobody-has-this==1.0\nPyYAML=={doctor._version('PyYAML')}\n"
    )
    (tmp_path / "requirements.txt").write_text("-r requirements-cpu.txt\nrich==0.1.0\n")
    needed, gpu = doctor.packages()
    version = doctor._version("rich")
    assert needed.status == "FAIL" and gpu.status == "warn"
    assert needed.found == (
        f"requirements-cpu.txt: missing: nobody-has-this; other versions: rich {version} (tested: 0.1.0)"
    )
    assert gpu.fix.endswith("pip install --no-deps $(grep ^unsloth requirements.txt)")
    monkeypatch.setattr(doctor, "nvidia_gpus", lambda: ["NVIDIA L4, 23034 MiB, 550.54"])
    assert [finding.fix for finding in doctor.packages()][1].endswith("pip install -r requirements.txt")


def test_the_hub_and_its_token(monkeypatch, tmp_path):
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))

    def told(token=None, kept=None):
        monkeypatch.setenv("HF_TOKEN", token or "")
        (tmp_path / "token").write_text(kept or "")
        [finding] = doctor.hub()
        assert TOKEN not in str(finding)
        return finding

    with stand_in(TOKEN) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        assert told(TOKEN).status == told(kept=TOKEN).status == "ok" and "the token is known" in told(TOKEN).found
        assert told("hf_wrong").status == "FAIL" and "refuses the token (status 401)" in told("hf_wrong").found
        assert told().status == "ok" and "no token: public models and data sets only" in told().found
    assert told().status == "warn" and "does not answer (" in told().found


def test_the_servers_of_a_config(monkeypatch, tmp_path):
    monkeypatch.setenv("KEY", "k")
    with stand_in("k") as server:
        (tmp_path / "c.yaml").write_text(
            f"servers:\n  one: {{base_url: {server.url}/api, api_key_env: KEY}}\n"
            f"  two: {{base_url: '{server.url}/v1?key=hush', api_key_env: sk-hush}}\n"
            "  three: {base_url: 'http://127.0.0.1:9/v1'}\n"
            "generation: {vllm: {url: 'http://127.0.0.1:9'}}\n"
        )
        found = list(doctor.servers(tmp_path / "c.yaml"))
    assert [finding.status for finding in found] == ["ok", "FAIL", "FAIL", "FAIL"]
    assert found[3].fix == "start the server, or correct generation.vllm.url"
    assert "its key is missing" in found[1].found and "that its api_key_env names" in found[1].fix
    assert "hush" not in str(found)
    assert "does not answer (" in found[2].found and "refused" in found[2].found
    (tmp_path / "c.yaml").write_text("a: [")
    with pytest.raises(ConfigError, match=r"c\.yaml: .*; correct it"):
        list(doctor.servers(tmp_path / "c.yaml"))


def test_a_config_that_does_not_load_is_to_be_fixed(tmp_path, capsys, monkeypatch):
    config = tmp_path / "c.yaml"
    text = (ROOT / "configs/tiny_sums.yaml").read_text(encoding="utf-8")
    config.write_text(text)
    [found] = doctor.keys(config)
    assert found.status == "ok" and found.found.startswith(f"{config} reads as a config of train.py; model and data: ")
    config.write_text(f"{text}\nsede: 1\nbeta: 2\n")
    for check in ("python", "packages", "imports_and_devices", "memory", "disk", "sandbox", "hub"):
        monkeypatch.setattr(doctor, check, lambda: iter(()))
    monkeypatch.setattr(sys, "argv", ["doctor.py", "--config", str(config)])
    assert doctor.main() == 1
    told = capsys.readouterr().out
    assert "sede: unknown key; did you mean 'seed'?" in told and told.endswith("\n0 ok, 0 to look at, 2 to fix\n")
    assert list(doctor.keys(None)) == []


def test_the_web_tools_of_a_config(monkeypatch, tmp_path):
    config = tmp_path / "c.yaml"

    def told(tools):
        config.write_text(tools)
        return [(finding.status, finding.found, finding.fix) for finding in doctor.web(config)]

    assert told("tools: {names: [python.run]}") == told("seed: 1") == told("- a") == list(doctor.web(None)) == []
    assert told(f"tools: {{names: [web.fetch], web: {{folder: {tmp_path}}}}}")[0][0] == "ok"
    [(status, found, fix)] = told(f"tools: {{names: [web.fetch], web: {{folder: {tmp_path}/nowhere}}}}")
    assert status == "FAIL" and "nowhere: not there" in found and "tools.web.folder" in fix
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "ddgs" else "1")
    with stand_in("k") as site:
        monkeypatch.setattr(doctor, "SITE", site.url)
        packages, internet = told("tools: {names: [web.search]}")
        assert packages == ("FAIL", "ddgs: not installed", "pip install -r requirements-web.txt")
        assert internet == ("ok", f"{site.url} answers 200", "")
    assert "does not answer (" in told("tools: {names: [web.search]}")[1][1]
    monkeypatch.setattr(doctor, "_ask", lambda address: (403, ""))  # a proxy that lets nothing through
    assert told("tools: {names: [web.search]}")[1][0] == "FAIL"


def test_a_place_that_cannot_be_written(monkeypatch):
    monkeypatch.setenv("HF_HOME", "/proc/nowhere")
    found = [finding for finding in doctor.disk() if finding.status == "FAIL"]
    assert len(found) == 1 and found[0].found.startswith("/proc/nowhere cannot be written (")
    assert found[0].fix == "set HF_HOME to a folder that can"
