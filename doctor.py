"""Checks this machine before a run does: versions, devices, memory, disk, sandbox, hub and servers, each with its cure.

    python doctor.py                                       # all of it, in half a minute
    python doctor.py --config configs/distill_gsm8k.yaml   # and a config, and the servers and web tools it names

It needs nothing but Python, so that it tells what is missing or broken. The versions that Rematch is tested with are
the pins of requirements*.txt. `ok` is fine, `warn` works with less, `FAIL` has to be fixed; below it stands how.

Exit codes: 0 nothing failed, 1 something did, 2 the command line.
"""

import argparse
import functools
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from lib.core.errors import ConfigError, UserError, first_line, run_script
from lib.run.machine import nvidia_gpus

ROOT = Path(__file__).resolve().parent
OK, WARN, FAIL = "ok", "warn", "FAIL"
PIN = re.compile(r"^([\w.-]+)==([\w.]+)", re.MULTILINE)
IMPORTED = (
    "numpy",
    "torch",
    "transformers",
    "tokenizers",
    "accelerate",
    "peft",
    "datasets",
    "trl",
    "openai",
    "pydantic",
)
IMPORT_SECONDS = 180.0  # a first import on a cold disk
SLOW = f"no end after {IMPORT_SECONDS:.0f} s"
PROBE_SECONDS = 5.0
SITE = "https://example.com"  # asked where a config has web tools
GB = 1e9
LEAST_MEMORY, LEAST_DISK = 4 * GB, 10 * GB  # the tests and demos; a language model's cache and checkpoints

# prints a JSON line before and after each import, so that a crash has a name, and at last what torch sees
CHILD = """
import importlib, json, sys
for name in sys.argv[1:]:
    print(json.dumps({"begins": name}), flush=True)
    try:
        importlib.import_module(name)
        error = ""
    except BaseException as caught:
        error = (str(caught).strip() or type(caught).__name__).splitlines()[0]
    print(json.dumps({"name": name, "error": error}), flush=True)
torch = sys.modules.get("torch")
if torch is not None and hasattr(torch, "cuda"):
    found = [torch.cuda.get_device_properties(i) for i in range(torch.cuda.device_count())]
    gpus = [{"name": gpu.name, "memory": gpu.total_memory, "capability": [gpu.major, gpu.minor]} for gpu in found]
    print(json.dumps({"cuda": torch.version.cuda, "threads": torch.get_num_threads(), "gpus": gpus}), flush=True)
"""


class Finding(NamedTuple):
    """What was found out about one thing, and how to fix it where it is not as it should be."""

    what: str
    status: str
    found: str
    fix: str = ""


def main() -> int:
    """Prints every finding as it is made. Returns 1 if something failed."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--config", type=Path, metavar="FILE", help="also check it, its servers and its web tools")
    args = options.parse_args()
    if args.config and not args.config.is_file():
        raise ConfigError(f"--config {args.config}: there is no such file; give the YAML file of a task")
    counts = dict.fromkeys((OK, WARN, FAIL), 0)
    for finding in findings(args.config):
        counts[finding.status] += 1
        print(f"{finding.what:<12} {finding.status:<4}  {finding.found}", flush=True)
        if finding.fix:
            print(f"{'':<12} {'->':<4}  {finding.fix}", flush=True)
    print(f"\n{counts[OK]} ok, {counts[WARN]} to look at, {counts[FAIL]} to fix")
    return 1 if counts[FAIL] else 0


def findings(config: Path | None) -> Iterator[Finding]:
    """Yields all findings; what a check itself stumbles over is one, too."""
    named = [functools.wraps(check)(functools.partial(check, config)) for check in (servers, web, keys)]
    checks: list[Callable[[], Iterator[Finding]]] = [
        python, packages, imports_and_devices, memory, disk, sandbox, hub, *named,
    ]  # fmt: skip
    for check in checks:
        try:
            yield from check()
        except (OSError, ValueError, subprocess.SubprocessError) as error:
            yield Finding(check.__name__, WARN, f"could not be checked: {first_line(error)}")


def python() -> Iterator[Finding]:
    """Compares this Python with those of pyproject.toml."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    wanted = re.search(r'requires-python = ">=3\.(\d+),<3\.(\d+)"', text)
    first, end = (int(number) for number in wanted.groups()) if wanted else (0, 99)
    found = f"{platform.python_version()} at {sys.executable}, on {platform.system()} {platform.machine()}"
    fix = f"make setup PYTHON=python3.{end - 2}, with any Python from 3.{first} to 3.{end - 2}"
    if sys.version_info[:2] == (3, end - 1):
        yield Finding("python", WARN, f"{found}; Rematch has not been run on 3.{end - 1}", fix)
    elif (3, first) <= sys.version_info[:2] < (3, end):
        yield Finding("python", OK, found)
    else:
        yield Finding("python", FAIL, f"{found}; expected 3.{first} to 3.{end - 2}", fix)


def pins(file: Path) -> dict[str, str]:
    """Returns the versions that a requirements file pins, by package."""
    return dict(PIN.findall(file.read_text(encoding="utf-8")))


def packages() -> Iterator[Finding]:
    """Compares the installed packages with each requirements file; all but requirements-cpu.txt are optional."""
    for file in sorted(ROOT.glob("requirements*.txt")):
        pinned, is_needed = pins(file), file.name == "requirements-cpu.txt"
        here = {name: _version(name) for name in pinned}
        missing = [name for name, version in here.items() if version is None]
        others = [f"{name} {version} (tested: {pinned[name]})" for name, version in here.items()
                  if version and version.partition("+")[0] != pinned[name]]  # fmt: skip
        if len(missing) == len(pinned) and not is_needed:
            yield Finding("packages", OK, f"{file.name}: none installed; they are optional")
        elif missing or others:
            told = [f"missing: {', '.join(missing)}"] if missing else []
            told += [f"other versions: {', '.join(others)}"] if others else []
            on_cpu = file.name == "requirements.txt" and not nvidia_gpus()
            what = "--no-deps $(grep ^unsloth requirements.txt)" if on_cpu else f"-r {file.name}"
            fix = f"{sys.executable} -m pip install {what}"
            status = FAIL if missing and is_needed else WARN
            yield Finding("packages", status, f"{file.name}: {'; '.join(told)}", fix)
        else:
            yield Finding("packages", OK, f"{file.name}: all {len(pinned)} as pinned")


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def imports_and_devices() -> Iterator[Finding]:
    """Imports the heavy packages in other processes, which may die of it, and asks torch for its GPUs."""
    left, broken, seen = [name for name in IMPORTED if _version(name)], {}, {}
    while left:
        rows, ending = _imported(left)
        done = [row["name"] for row in rows if "name" in row]
        broken |= {row["name"]: row["error"] for row in rows if row.get("error")}
        seen = next((row for row in rows if "gpus" in row), seen)
        begun = [row["begins"] for row in rows if "begins" in row]
        if len(begun) > len(done):  # it died in the middle of this one
            broken[begun[-1]] = ending
            done.append(begun[-1])
        elif not begun:
            raise OSError(f"{sys.executable} does not start: {ending}")
        left = [name for name in left if name not in done]
    for name, error in broken.items():
        if error == SLOW:
            yield Finding(
                "imports", WARN, f"{name}: {error}", "is the machine busy, or its disk slow? Run doctor.py again"
            )
            continue
        fix = f"{sys.executable} -m pip install --force-reinstall --no-deps {name}=={_version(name)}"
        yield Finding("imports", FAIL, f"{name}: {error}", f"{fix}; then doctor.py again")
    if not broken:
        yield Finding("imports", OK, ", ".join(name for name in IMPORTED if _version(name)) or "none is installed")
    yield _devices(nvidia_gpus(), seen)


def _imported(names: list[str]) -> tuple[list[dict[str, Any]], str]:
    """Returns the output of CHILD, and how it ended."""
    try:
        result = subprocess.run(
            [sys.executable, "-c", CHILD, *names], capture_output=True, text=True, timeout=IMPORT_SECONDS
        )
        said, lines = result.stdout, result.stderr.strip().splitlines()
        ending = f"the process ended with {result.returncode}{f' ({lines[-1]})' if lines else ''}"
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode() if isinstance(error.stdout, bytes) else error.stdout or ""
        ending = SLOW
    return [json.loads(line) for line in said.splitlines() if line.startswith("{")], ending


def _devices(driver: list[str], seen: dict[str, Any]) -> Finding:
    if not seen:
        return Finding("devices", WARN, f"unknown without torch; the driver has {'; '.join(driver) or 'no GPU'}")
    gpus = [f"{gpu['name']}, {gpu['memory'] / GB:.0f} GB, compute capability {'.'.join(map(str, gpu['capability']))}"
            for gpu in seen["gpus"]]  # fmt: skip
    if gpus:
        old = any(gpu["capability"][0] < 8 for gpu in seen["gpus"])
        fix = "no bfloat16 there: set model.dtype=float32, or load_in_4bit" if old else ""
        return Finding("devices", WARN if old else OK, f"{'; '.join(gpus)}; CUDA {seen['cuda']}", fix)
    if driver:
        built = f"is built for CUDA {seen['cuda']}" if seen["cuda"] else "is a CPU build"
        fix = "install torch for CUDA from pytorch.org's index, at the pinned version, or a newer driver"
        return Finding("devices", FAIL, f"the driver has {'; '.join(driver)}, torch none: it {built}", fix)
    return Finding("devices", OK, f"no GPU: {seen['threads']} threads; tiny models train, language models want a GPU")


def memory() -> Iterator[Finding]:
    """Reports cores and memory, where a container has limits those."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = Path("/sys/fs/cgroup/memory.max")
    inside = limit.read_text().strip() if limit.is_file() else "max"
    most = min(total, int(inside)) if inside.isdigit() else total
    found = f"{most / GB:.1f} GB{' (a limit of the container)' if most < total else ''}, {os.cpu_count()} cores"
    meminfo = Path("/proc/meminfo")
    if meminfo.is_file() and (free := re.search(r"MemAvailable: +(\d+) kB", meminfo.read_text())):
        found += f", {min(most, int(free[1]) * 1024) / GB:.1f} GB free"
    fix = (
        ""
        if most >= LEAST_MEMORY
        else "the tests and demos want 4 GB: lower train.micro_batch_tokens, run fewer at once"
    )
    yield Finding("memory", WARN if fix else OK, found, fix)


def disk() -> Iterator[Finding]:
    """Writes a file where runs, models and temporary files go, and looks at the space there."""
    cache = Path(
        os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "huggingface"
    )
    for what, place in {"runs": Path("outputs"), "models": cache, "temporary": Path(tempfile.gettempdir())}.items():
        there = next(folder for folder in (place.absolute(), *place.absolute().parents) if folder.exists())
        free = shutil.disk_usage(there).free
        found = f"{what}: {free / GB:.0f} GB free in {place}"
        try:
            tempfile.TemporaryFile(dir=there).close()
        except OSError as error:
            fix = {"runs": "set output_dir=", "models": "set HF_HOME to", "temporary": "set TMPDIR to"}[what]
            yield Finding("disk", FAIL, f"{place} cannot be written ({error.strerror})", f"{fix} a folder that can")
            continue
        fix = "" if free >= LEAST_DISK else "less than 10 GB: enough for tiny models; free some, or name another disk"
        yield Finding("disk", WARN if fix else OK, found, fix)


def sandbox() -> Iterator[Finding]:
    """Tries what contains a model's programs on this machine."""
    from judge.isolation import try_rungs

    cure = "see `python -m judge --self-test` and docs/judge.md; rewards that run no programs do without it"
    try:
        *tried, taken = try_rungs(None, True)
    except UserError as error:
        yield Finding("sandbox", WARN, first_line(error), cure)
        return
    above = "".join(f"; {check.rung.name} not here: {check.why_not}" for check in tried)
    is_open = taken.rung.name == "R1"
    yield Finding(
        "sandbox", WARN if is_open else OK, f"{taken.rung.name}, {taken.rung.gives}{above}", cure if is_open else ""
    )


def hub() -> Iterator[Finding]:
    """Asks whether the Hugging Face Hub answers, and whether it knows the token, which is shown nowhere."""
    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co").rstrip("/")
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        yield Finding("hub", OK, "not asked, since HF_HUB_OFFLINE is set: local folders and the cache alone")
        return
    token = os.environ.get("HF_TOKEN") or _kept_token()
    if not token:
        status, said = _ask(f"{address}/api/models?limit=1")
        told, fix = (
            "no token: public models and data sets only",
            "`hf auth login`, or HF_TOKEN, for private ones and to push",
        )
    else:
        status, said = _ask(f"{address}/api/whoami-v2", token)
        told, fix = "the token is known", ""
    if status == 0:
        yield Finding(
            "hub",
            WARN,
            f"{address} does not answer ({said})",
            "connect, set HF_ENDPOINT, or use local folders: model.name=PATH, dataset.name=PATH",
        )
    elif status in (401, 403):
        yield Finding(
            "hub", FAIL, f"{address} refuses the token (status {status})", "`hf auth login`, or correct HF_TOKEN"
        )
    elif status >= 400:
        yield Finding("hub", WARN, f"{address} answers with status {status}", "try again later")
    else:
        yield Finding("hub", OK, f"{address} answers; {told}{f' ({fix})' if fix else ''}")


def _kept_token() -> str:
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    kept = Path(os.environ.get("HF_TOKEN_PATH") or home / "token")
    return kept.read_text(encoding="utf-8").strip() if kept.is_file() else ""


def servers(config: Path | None) -> Iterator[Finding]:
    """Asks every OpenAI-compatible server that a config names, or the environment, for its models; and vLLM's."""
    found: list[tuple[str, str, str | None]] = []
    if config:
        try:
            found = list(_endpoints(_tree_of(config)))
        except ImportError:
            fix = "install requirements-cpu.txt first"
            yield Finding("servers", WARN, f"{config} cannot be read without PyYAML", fix)
            return
    elif os.environ.get("OPENAI_BASE_URL"):
        found = [(os.environ["OPENAI_BASE_URL"].partition("?")[0], "models", "OPENAI_API_KEY")]
    for address, asked, variable in dict.fromkeys(found):
        key = os.environ.get(variable) if variable else None
        if variable and not key:
            fix = "export the variable that its api_key_env names, OPENAI_API_KEY without a config"
            yield Finding("servers", FAIL, f"{address}: its key is missing", fix)
            continue
        status, said = _ask(f"{address.rstrip('/')}/{asked}", key)
        if status == 0:
            fix = f"start the server, or correct {'base_url' if asked == 'models' else 'generation.vllm.url'}"
            yield Finding("servers", FAIL, f"{address} does not answer ({said})", fix)
        elif status in (401, 403):
            yield Finding(
                "servers", FAIL, f"{address} refuses the key (status {status})", f"correct {variable or 'api_key_env'}"
            )
        else:
            yield Finding("servers", OK if status < 400 else WARN, f"{address} answers (status {status})")


def web(config: Path | None) -> Iterator[Finding]:
    """Checks what the web tools of a config need: packages and the internet, or a folder of documents."""
    try:
        tree = _tree_of(config) if config else None
    except ImportError:
        return  # which the check of servers reports
    tools = tree.get("tools") if isinstance(tree, dict) else None
    names = tools.get("names") if isinstance(tools, dict) else None
    if not isinstance(names, list) or not any(str(name).startswith("web.") for name in names):
        return
    web_tools = tools.get("web")
    if isinstance(web_tools, dict) and (folder := web_tools.get("folder")):
        is_there = Path(folder).expanduser().is_dir()
        fix = "" if is_there else "correct tools.web.folder: it names a folder of .txt and .md files"
        yield Finding("web", OK if is_there else FAIL, f"documents in {folder}{'' if is_there else ': not there'}", fix)
        return
    pinned = PIN.findall((ROOT / "requirements-web.txt").read_text(encoding="utf-8"))
    if missing := [name for name, _ in pinned if _version(name) is None]:
        yield Finding("web", FAIL, f"{', '.join(missing)}: not installed", "pip install -r requirements-web.txt")
    status, said = _ask(SITE)
    answers = 0 < status < 400
    fix = "" if answers else "connect, or take documents of your own: tools.web.folder=DIR"
    yield Finding(
        "web",
        OK if answers else FAIL,
        f"{SITE} answers {status}" if status else f"{SITE} does not answer ({said})",
        fix,
    )


def keys(config: Path | None) -> Iterator[Finding]:
    """Loads a config as its script does; model and data are left to the script's --dry-run."""
    if not config:
        return
    try:
        import reward_function  # noqa: F401  registers rewards and extractors
        from lib.core.config import KINDS, load
    except ImportError:
        return  # which the check of packages reports
    try:
        script = type(load(KINDS, config)).__doc__
    except UserError as error:
        for line in str(error).splitlines():
            yield Finding("config", FAIL, line, f"correct {config}")
        return
    dry_run = f"python {script} --config {config} --dry-run"
    yield Finding("config", OK, f"{config} reads as a config of {script}; model and data: {dry_run}")


def _tree_of(config: Path) -> Any:
    """Returns a config as nested dicts. Raises ConfigError where it is no YAML, ImportError without PyYAML."""
    import yaml

    try:
        return yaml.safe_load(config.read_text(encoding="utf-8"))
    except yaml.YAMLError as error:
        raise ConfigError(f"--config {config}: {first_line(error)}; correct it") from error


def _endpoints(tree: Any) -> Iterator[tuple[str, str, str | None]]:
    """Yields the address of every server in a config, what to ask it for, and the variable with its key."""
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        yield from _endpoints(value)
    if isinstance(tree, dict) and isinstance(tree.get("base_url"), str):
        yield tree["base_url"].partition("?")[0], "models", tree.get("api_key_env")
    vllm = tree.get("vllm") if isinstance(tree, dict) else None
    if isinstance(vllm, dict) and isinstance(vllm.get("url"), str):
        yield vllm["url"], "health", None


def _ask(address: str, key: str | None = None) -> tuple[int, str]:
    """Returns the status of an answer, or 0 and the reason why there is none."""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=PROBE_SECONDS) as answer:
            return answer.status, ""
    except urllib.error.HTTPError as error:
        return error.code, ""
    except (OSError, ValueError) as error:
        return 0, first_line(
            getattr(error, "reason", error) if isinstance(getattr(error, "reason", None), OSError) else error
        )


if __name__ == "__main__":
    run_script(main)
