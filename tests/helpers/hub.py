"""A stand-in of the Hugging Face Hub on loopback: as much of its HTTP interface as the real client uses for models.

    with stand_in("hf_token") as hub:       # environment(hub, folder) makes a process use it
        hub.repos["me/run"].branches["main"]["README.md"]     # the bytes of a file at a revision
        hub.refuses = lambda method, path: 403 if method == "PUT" else 0

Small files come within a commit, weights by the protocol of git LFS, as there; only who has the token may write, and
read what is private.
"""

import base64
import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".bin")


@dataclass
class Repo:
    private: bool
    branches: dict[str, dict[str, bytes]] = field(default_factory=lambda: {"main": {}})
    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by id
    heads: dict[str, str] = field(default_factory=dict)  # id of the last commit, by branch

    def commit(self, branch: str, files: dict[str, bytes]) -> str:
        self.branches[branch] = {**self.branches[branch], **files}
        said = json.dumps([branch, len(self.commits), sorted(self.branches[branch])])
        self.heads[branch] = hashlib.sha1(said.encode()).hexdigest()
        self.commits[self.heads[branch]] = self.branches[branch]
        return self.heads[branch]

    def at(self, revision: str) -> tuple[str, dict[str, bytes]] | None:
        commit = self.heads.get(revision, revision)
        return (commit, self.commits[commit]) if commit in self.commits else None


class StandIn:
    def __init__(self, token: str):
        self.token, self.url = token, ""
        self.repos: dict[str, Repo] = {}
        self.stored: dict[str, bytes] = {}  # large files by SHA-256
        self.log: list[tuple[str, str]] = []  # method and path of every request
        self.refuses: Callable[[str, str], int] = lambda method, path: 0
        self.committed: Callable[[str, dict[str, bytes]], None] = lambda branch, files: None  # before the answer


def fingerprint(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def object_id(name: str, content: bytes) -> str:
    """What the client compares a file with, to leave out of a commit what has not changed."""
    if name.endswith(LARGE):
        return fingerprint(content)
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: StandIn

    def do_HEAD(self):
        self._do()

    do_GET = do_POST = do_PUT = do_HEAD

    def log_message(self, *_):
        pass

    def _do(self) -> None:
        path = unquote(urlsplit(self.path).path).strip("/")
        self.hub.log.append((self.command, path))
        body = self._body()
        if status := self.hub.refuses(self.command, path):
            return self._send(status, {"error": "refused by the test"})
        try:
            self._route(path.split("/"), body)
        except KeyError as error:
            self._send(404, {"error": f"not found: {error}"}, {"X-Error-Code": "RepoNotFound"})

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size + 2)[:-2]
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _route(self, words: list[str], body: bytes) -> None:
        hub, is_mine = self.hub, self.headers.get("Authorization") == f"Bearer {self.hub.token}"
        if words == [""]:
            return self._send(200, {})
        if words[:1] == ["lfs"] and self.command == "PUT":  # the address is what was allowed
            assert hashlib.sha256(body).hexdigest() == words[1]
            hub.stored[words[1]] = body
            return self._send(200, {})
        if self.command in ("POST", "PUT") and not is_mine:
            return self._send(401, {"error": "Invalid credentials in Authorization header"})
        if words == ["api", "whoami-v2"]:
            return self._send(200 if is_mine else 401, {"name": "me", "type": "user"} if is_mine else {})
        if words == ["api", "models"]:
            return self._send(200, [])
        if words == ["api", "validate-yaml"]:
            return self._send(200, {"errors": [], "warnings": []})
        if words == ["api", "repos", "create"]:
            return self._create(json.loads(body))
        if words[:2] == ["api", "models"]:
            return self._of_model("/".join(words[2:4]), words[4:], body, is_mine)
        if words[2:] == ["info", "lfs", "objects", "batch"]:
            return self._batch(json.loads(body))
        if words[2:3] == ["resolve"]:
            return self._file("/".join(words[:2]), words[3], "/".join(words[4:]), is_mine)
        self._send(404, {"error": "no such page"})

    def _create(self, wanted: dict) -> None:
        name = f"{wanted.get('organization') or 'me'}/{wanted['name']}"
        told = {"url": f"{self.hub.url}/{name}", "id": name, "name": name}
        if name in self.hub.repos:
            return self._send(409, {**told, "error": "You already created this model repo"})
        self.hub.repos[name] = Repo(wanted.get("visibility") == "private" or bool(wanted.get("private")))
        self.hub.repos[name].commit("main", {".gitattributes": b""})
        self._send(200, told)

    def _of_model(self, name: str, words: list[str], body: bytes, is_mine: bool) -> None:
        repo = self._readable(name, is_mine)
        if words[:1] == ["branch"]:
            if words[1] in repo.branches:
                return self._send(409, {"error": "Reference already exists"})
            repo.branches[words[1]] = repo.branches["main"]
            repo.commit(words[1], {})
            return self._send(200, {})
        if words[:1] == ["preupload"]:
            there = repo.branches[words[1]]
            files = [
                {"path": file["path"], "shouldIgnore": False,
                 "uploadMode": "lfs" if file["path"].endswith(LARGE) else "regular",
                 **({"oid": object_id(file["path"], there[file["path"]])} if file["path"] in there else {})}
                for file in json.loads(body)["files"]
            ]  # fmt: skip
            return self._send(200, {"files": files})
        if words[:1] == ["commit"]:
            files = dict(self._committed(body))
            commit = repo.commit(words[1], files)
            self.hub.committed(words[1], files)
            return self._send(200, {"success": True, "commitOid": commit, "commitUrl": f"{self.hub.url}/c/{commit}"})
        found = repo.at(words[1] if words[:1] in (["revision"], ["tree"]) else "main")
        if found is None:
            return self._send(404, {"error": "Invalid rev id"}, {"X-Error-Code": "RevisionNotFound"})
        commit, files = found
        if words[:1] == ["tree"]:
            return self._send(200, [{"type": "file", "path": file, "size": len(content), "oid": fingerprint(content)}
                                    for file, content in sorted(files.items())])  # fmt: skip
        siblings = [{"rfilename": file} for file in sorted(files)]
        told = {"id": name, "modelId": name, "sha": commit, "private": repo.private, "siblings": siblings, "tags": []}
        return self._send(200, told)

    def _committed(self, body: bytes) -> Iterator[tuple[str, bytes]]:
        for line in body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                yield value["path"], base64.b64decode(value["content"])
            elif entry["key"] == "lfsFile":
                yield value["path"], self.hub.stored[value["oid"]]
            else:
                assert entry["key"] == "header"

    def _batch(self, wanted: dict) -> None:
        objects = [dict(item) for item in wanted["objects"]]
        for item in objects:
            if item["oid"] not in self.hub.stored:
                item["actions"] = {"upload": {"href": f"{self.hub.url}/lfs/{item['oid']}"}}
        self._send(200, {"transfer": "basic", "objects": objects})

    def _file(self, name: str, revision: str, file: str, is_mine: bool) -> None:
        found = self._readable(name, is_mine).at(revision)
        if found is None or file not in found[1]:
            code = "EntryNotFound" if found else "RevisionNotFound"
            return self._send(404, {"error": "Not found"}, {"X-Error-Code": code})
        content = found[1][file]
        self._send(200, content, {"X-Repo-Commit": found[0], "ETag": f'"{fingerprint(content)}"'})

    def _readable(self, name: str, is_mine: bool) -> Repo:
        repo = self.hub.repos[name]
        if repo.private and not is_mine:
            raise KeyError(name)  # as if it were not there
        return repo

    def _send(self, status: int, content: dict | list | bytes, headers: dict[str, str] | None = None) -> None:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for key, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            self.send_header(key, value)
        if not isinstance(content, bytes):
            self.send_header("Content-Type", "application/json")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def stand_in(token: str) -> Iterator[StandIn]:
    """A hub that is empty."""
    hub = StandIn(token)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()


def environment(hub: StandIn, folder: Path) -> dict[str, str]:
    """What makes the real client of a process use this hub, and nothing of this machine's user."""
    return {"HF_ENDPOINT": hub.url, "HF_TOKEN": hub.token, "HF_HOME": str(folder), "HF_HUB_DISABLE_XET": "1"}
