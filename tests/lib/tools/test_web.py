"""The two web tools in a world of their own: names resolve as NAMES says, every connect() is recorded, and a server on
loopback plays the public addresses. Nothing leaves this machine, whatever the tools do."""

import asyncio
import contextlib
import functools
import gzip
import ipaddress
import os
import shutil
import socket
import socketserver
import ssl
import subprocess
import sys
import threading
import time

import httpx
import psutil
import pytest

import lib.core.config
import lib.core.killable
from lib.core.errors import ConfigError
from lib.core.killable import ProcessJob, ProcessKilled, ProcessPool, Refused
from lib.tools.extraction import extract, search
from lib.tools.pages import EXTRACT, Parser, clean
from lib.tools.web import Web

pytest.importorskip("ssrfguard")
pytest.importorskip("trafilatura")
pytest.importorskip("ddgs")

PUBLIC, PUBLIC6 = "93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946"
PLAYED = {PUBLIC, PUBLIC6, "93.184.216.35", str(ipaddress.ip_address(f"::ffff:{PUBLIC}"))}
NAMES = {  # name -> answers, in turn; the last one stays
    "public.example": [[PUBLIC]],
    "xn--bcher-kva.example": [[PUBLIC]],
    "dual.example": [[PUBLIC6, PUBLIC]],
    "other.example": [["93.184.216.35"]],
    "rebinding.example": [[PUBLIC], ["127.0.0.1"]],
    "rebinding6.example": [[PUBLIC], ["::1"]],
    "turned.example": [["127.0.0.1"], [PUBLIC]],
    "mixed.example": [[PUBLIC, "127.0.0.1"]],
    "mixed-first.example": [["127.0.0.1", PUBLIC]],
    "mixed6.example": [[PUBLIC, "::1"]],
    "mixed-ten.example": [[PUBLIC, "93.184.216.35", "10.0.0.1"]],
    "loop.example": [["127.0.0.1"]],
    "loop6.example": [["::1"]],
    "mapped.example": [["::ffff:127.0.0.1"]],
    "nat64.example": [["64:ff9b::a9fe:a9fe"]],
    "zero.example": [["0.0.0.0"]],
    "ten.example": [["10.0.0.1"]],
    "shared.example": [["100.64.0.1"]],
    "ula.example": [["fd12:3456::1"]],
    "scoped.example": [["fe80::1%1"]],
    "metadata.example": [["169.254.169.254"]],
    "wire.example": [["168.63.129.16"]],
    "127.0.0.1.nip.io": [["127.0.0.1"]],
    "127-0-0-1.sslip.io": [["127.0.0.1"]],
    "localtest.me": [["127.0.0.1"]],
    "metadata.google.internal": [["169.254.169.254"]],
    "kubernetes.default.svc": [["10.96.0.1"]],
    "kubernetes.default.svc.cluster.local": [["10.96.0.1"]],
    "metadata": [["169.254.169.254"]],
    "localhost": [["127.0.0.1", "::1"]],
    "printer.local": [["192.168.1.9"]],
    "own.example": [["93.184.216.77"]],
}


trusted = functools.cache(httpx.create_ssl_context)  # reading the certificates takes longer than most tests


class Memory:
    """Answers by key, as of a run without a disk."""

    def __init__(self):
        self.values = {}

    async def once(self, key, make):
        if key not in self.values:
            self.values[key] = asyncio.ensure_future(make())
        return await self.values[key]


def reply(body=b"a page", kind="text/plain", status="200 OK", **headers):
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close"]
    lines += [f"Content-Type: {kind}"] if kind else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def moved(to, status="302 Found"):
    return reply(b"", status=status, Location=to)


class World:
    """Names, connects and the server behind all public addresses."""

    def __init__(self):
        self.pages, self.heads, self.connects, self.asked, self.sent = {}, [], [], [], 0
        self.answers = {name: list(answers) for name, answers in NAMES.items()}
        self.over = threading.Event()  # ends what hangs

    def answer(self, client):
        head = b""
        while b"\r\n\r\n" not in head:
            block = client.recv(65536)
            if not block:
                return
            head += block
            if head[0] == 22:  # a TLS handshake
                return client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        self.heads.append(head.decode("latin-1"))
        path = head.split(b" ")[1].decode("latin-1")
        page = self.pages.get(path, reply())
        page(client) if callable(page) else client.sendall(page)

    def send(self, client, data):
        client.sendall(data)
        self.sent += len(data)

    def drip(self, client, data):
        for byte in data:
            client.sendall(bytes([byte]))
            if self.over.wait(0.1):
                return


def serve(world, context=None):
    class Handler(socketserver.BaseRequestHandler):
        def handle(self):
            with contextlib.suppress(OSError):
                client = context.wrap_socket(self.request, server_side=True) if context else self.request
                world.answer(client)
                client.shutdown(socket.SHUT_RDWR)

    class Server(socketserver.ThreadingTCPServer):
        request_queue_size = 1024  # with the usual 5, connections wait for a second and more

    server = Server(("127.0.0.1", 0), Handler)
    server.daemon_threads, server.block_on_close = True, False
    threading.Thread(target=server.serve_forever, args=(0.002,), daemon=True).start()
    return server


@pytest.fixture
def world(monkeypatch):
    world = World()
    with serve(world) as canary:
        ports = {80: canary.server_address[1]}
        world.ports = ports
        played = {}
        real = {name: getattr(socket.socket, name) for name in ("connect", "getpeername")}
        real_lookup = socket.getaddrinfo

        def connect(self, address):
            if self.family not in (socket.AF_INET, socket.AF_INET6):
                return real["connect"](self, address)
            world.connects.append(address[:2])
            if address[0] not in PLAYED or address[1] not in ports:
                raise ConnectionRefusedError
            played[self.fileno()] = address
            loopback = "127.0.0.1" if self.family == socket.AF_INET else "::ffff:127.0.0.1"
            return real["connect"](self, (loopback, ports[address[1]]))

        def getpeername(self):
            return played.get(self.fileno()) or real["getpeername"](self)

        def lookup(host, port, family=0, type=0, proto=0, flags=0):
            host = host.decode() if isinstance(host, bytes) else host
            with contextlib.suppress(socket.gaierror):  # an address, in any of the spellings that the C library knows
                return real_lookup(host, port, family, type, proto, flags | socket.AI_NUMERICHOST)
            world.asked.append(host)
            answers = world.answers.get(host.rstrip(".").lower())
            if answers is None:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            if callable(answers):
                return answers()
            ips = answers.pop(0) if len(answers) > 1 else answers[0]
            return [found for ip in ips for found in real_lookup(ip, port, 0, type, proto, socket.AI_NUMERICHOST)]

        monkeypatch.setattr(socket.socket, "connect", connect)
        monkeypatch.setattr(socket.socket, "getpeername", getpeername)
        monkeypatch.setattr(socket, "getaddrinfo", lookup)
        monkeypatch.setattr(httpx, "create_ssl_context", trusted)
        yield world
        world.over.set()
        canary.shutdown()


def settings(**more):
    return lib.core.config.WebSettings(**{"timeout_s": 20.0, **more})


def use(do, memory=None, **more):
    """Runs `await do(web)` with a Web of these settings."""

    async def run():
        web = Web(settings(**more), memory or Memory())
        try:
            return await do(web)
        finally:
            await web.close()

    return asyncio.run(run())


def fetch(url, max_bytes=800_000, **more):
    return use(lambda web: web.fetch(url, max_bytes), **more)


REACHED = {
    "a name": "http://public.example/",
    "with a dot at its end": "http://public.example./",
    "in capitals": "HTTP://PUBLIC.Example/",
    "an address": f"http://{PUBLIC}/",
    "an IPv6 address": f"http://[{PUBLIC6}]/",
    "both kinds of addresses": "http://dual.example/",
    "a port of the list": "http://public.example:80/",
    "an international name": "http://bücher.example/",
    "a query and a fragment": "http://public.example/?u=http://127.0.0.1/#@127.0.0.1/",
    "a public address in an IPv4-mapped one": f"http://[::ffff:{PUBLIC}]/",
}


@pytest.mark.parametrize("url", REACHED.values(), ids=REACHED)
def test_what_is_public_is_reached(world, url):
    world.pages["/?u=http://127.0.0.1/"] = reply()
    found = fetch(url)
    assert (found["status"], found["text"]) == (200, "a page")
    assert {address for address, _ in world.connects} <= PLAYED


BLOCKED = {
    "loopback": [
        "http://127.0.0.1/", "http://127.0.0.1:80/x", "https://127.0.0.1/", "http://127.8.9.10/",
        "http://127.255.255.254/", "http://localhost/", "http://LOCALHOST./", "http://localhost.localdomain/",
        "http://anything.localhost/",
    ],
    "IPv4 spelled otherwise": [
        "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0177.0.0.1/", "http://0x7f.1/",
        "http://0x7f000001/", "http://0x7f.0.0.0x1/", "http://017700000001/", "http://127.0.0.1./",
        "http://0300.0250.0.1/", "http://3232235521/", "http://127.0.0.01/", "http://000127.0.0.1/",
        "http://4294967295/", "http://127.0.0.1.1/", "http://999.1.1.1/", "http://public.example.1/",
        "http://public.example.0x7f/", "http://public.example.0x/", "http://1.1.1.0x1/",
    ],
    "this host": ["http://0/", "http://0.0.0.0/", "http://0.1.2.3/", "http://[::]/", "http://zero.example/"],
    "IPv6": [
        "http://[::1]/", "http://[0:0:0:0:0:0:0:1]/", "http://[::0001]/", "http://[::127.0.0.1]/",
        "http://[::7f00:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::FFFF:10.0.0.1]/",
        "http://[::ffff:169.254.169.254]/", "http://[::ffff:0:127.0.0.1]/", "http://[64:ff9b::7f00:1]/",
        "http://[64:ff9b::10.0.0.1]/", "http://[64:ff9b:1::1]/", "http://[2002:7f00:1::]/", "http://[2002:a00:1::1]/",
        "http://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "http://[2001:0:7f00:1::1]/", "http://[fe80::1]/",
        "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1%25lo]/", "http://[fc00::1]/",
        "http://[fd12:3456:789a::1]/", "http://[fec0::1]/", "http://[ff02::1]/", "http://[2001:db8::1]/",
        "http://[100::1]/", "http://[3fff::1]/", "http://[5f00::1]/", "http://[4000::1]/", "http://[8000::1]/",
        "http://[2001:2::1]/", "http://mapped.example/", "http://loop6.example/", "http://ula.example/",
        "http://scoped.example/", "http://nat64.example/",
    ],
    "private and reserved": [
        "http://10.0.0.1/", "http://10.255.255.255/", "http://172.16.0.1/", "http://172.31.255.1/",
        "http://192.168.0.1/", "http://100.64.0.1/", "http://100.127.255.254/", "http://169.254.1.1/",
        "http://224.0.0.1/", "http://239.255.255.250/", "http://240.0.0.1/", "http://255.255.255.255/",
        "http://192.0.0.1/", "http://192.0.2.1/", "http://198.51.100.7/", "http://203.0.113.9/",
        "http://198.18.0.1/", "http://198.19.255.255/", "http://192.88.99.1/", "http://ten.example/",
        "http://shared.example/",
    ],
    "metadata": [
        "http://169.254.169.254/latest/meta-data/", "http://metadata.google.internal/computeMetadata/v1/",
        "http://metadata/", "http://metadata.example/", "http://169.254.170.2/v2/credentials",
        "http://100.100.100.200/", "http://[fd00:ec2::254]/", "http://192.0.0.192/", "http://2852039166/",
        "http://0xa9.0xfe.0xa9.0xfe/", "http://[::ffff:a9fe:a9fe]/", "http://168.63.129.16/machine?comp=goalstate",
        "http://[64:ff9b::a83f:8110]/", "http://wire.example/",
    ],
    "private names": [
        "http://kubernetes.default.svc/", "http://kubernetes.default.svc.cluster.local/", "http://127.0.0.1.nip.io/",
        "http://127-0-0-1.sslip.io/", "http://localtest.me/", "http://printer.local/", "http://router/",
        "http://host.docker.internal/", "http://wiki.corp/", "http://nas.home.arpa/", "http://loop.example/",
    ],
    "several answers": [
        "http://mixed.example/", "http://mixed-first.example/", "http://mixed6.example/", "http://mixed-ten.example/",
        "http://turned.example/",
    ],
    "who is the host": [
        "http://public.example@127.0.0.1/", "http://public.example:80@127.0.0.1/", "http://127.0.0.1@public.example/",
        "http://user:secret@public.example/", "http://@public.example/", "http://127.0.0.1#@public.example/",
        "http://127.0.0.1?@public.example/", "http://127.0.0.1\\@public.example/", "http://public.example\\@127.0.0.1/",
        "http://127.0.0.1\\.public.example/", "http:\\\\127.0.0.1/", "http:/127.0.0.1/", "http:///127.0.0.1/",
        "http:127.0.0.1/", "http://①②⑦.⓪.⓪.①/", "http://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/", "http://127。0。0。1/", "http://127．0．0．1/",
        "http://１２７.0.0.1/", "http://127.0.0.1%00.public.example/", "http://127.0.0.%31/", "http://%6c%6fcalhost/",
        "http://public.example%2f@127.0.0.1/", "http://127.0.0.1\t/", "http://127.0.\n0.1/", "\nhttp://127.0.0.1/",
        "http://127.0.0.1 .public.example/", "http://[127.0.0.1]/", "http://[::1/", "http://::1/", "http://[]/",
        "http://-/", "http://..../", "http://" + "a" * 300 + ".example/", "http://a_b.localhost/", "http://",
        "http://\ud800/", "http://public.example/\ud800",
    ],
    "schemes": [
        "file:///etc/passwd", "FILE:///etc/passwd", "file://127.0.0.1/etc/passwd", "gopher://127.0.0.1:70/_x",
        "ftp://public.example/", "dict://public.example:80/", "data:text/plain,hello", "javascript:alert(1)",
        "ws://public.example/", "unix:///var/run/docker.sock", "http+unix://%2fvar%2frun/x", "view-source:http://a.b/",
        "ldap://public.example/", "jar:http://public.example/!/", "public.example", "public.example/page",
        "//public.example/", "/etc/passwd", "", " ", "doc:notes.txt", "https:", "about:blank",
    ],
    "injection": [
        "http://public.example/\r\nX-Injected: 1", "http://public.example/\nHost: 127.0.0.1", "http://public.example/\r",
        "http://public.example/?q=a b", "http://public.example\r\n/", "http://public.example/\x00", "http://public.example/\x7f",
        "http://public.example/" + "a" * 2048,
    ],
    "ports": [
        "http://public.example:22/", "http://public.example:6379/", "http://public.example:8080/", "http://127.0.0.1:22/",
        "http://public.example:0/", "http://public.example:65536/", "http://public.example:-1/",
        "http://public.example:80a/", "https://public.example:25/", "http://public.example:99999999999999999999/",
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    "url", [pytest.param(url, id=f"{kind}: {url[:50]!a}") for kind, urls in BLOCKED.items() for url in urls]
)
def test_what_is_not_public_gets_no_packet(world, url):
    found = fetch(url)
    assert found.keys() == {"error"} and found["error"].startswith("blocked: ")
    assert world.connects == [] and world.heads == []


REDIRECTS = {
    "to loopback": "http://127.0.0.1/",
    "to loopback, spelled otherwise": "http://2130706433/",
    "to IPv6": "http://[::1]/",
    "to IPv4 in IPv6": "http://[::ffff:127.0.0.1]/",
    "to a private name": "http://ten.example/",
    "to metadata": "http://169.254.169.254/latest/",
    "to the name of metadata": "http://metadata.google.internal/",
    "without a scheme": "//127.0.0.1/",
    "to a file": "file:///etc/passwd",
    "to gopher": "gopher://127.0.0.1:6379/_x",
    "to data": "data:text/plain,hello",
    "to a port": "http://public.example:22/",
    "with userinfo": "http://user:secret@other.example/",
    "with a user who looks like a host": "http://public.example@127.0.0.1/",
    "to mixed answers": "http://mixed.example/",
    "to no address": "http://999.999.1.1/",
}


@pytest.mark.parametrize("to", REDIRECTS.values(), ids=REDIRECTS)
@pytest.mark.parametrize("status", ["301 Moved Permanently", "307 Temporary Redirect"], ids=["301", "307"])
def test_every_redirect_is_judged_anew(world, to, status):
    world.pages["/"] = moved(to, status)
    assert fetch("http://public.example/")["error"].startswith("blocked: ")
    assert world.connects == [(PUBLIC, 80)] and len(world.heads) == 1


def test_a_redirect_may_be_relative_or_lead_to_another_public_host(world):
    world.pages |= {"/": moved("/next"), "/next": moved("http://other.example/last"), "/last": reply(b"there")}
    found = fetch("http://public.example/")
    assert found == {"url": "http://other.example/last", "status": 200, "text": "there"}


def test_five_redirects_are_followed_and_a_loop_ends(world):
    world.pages |= {f"/{n}": moved(f"/{n + 1}") for n in range(5)}
    assert fetch("http://public.example/0")["url"].endswith("/5")
    world.heads.clear()
    world.pages["/"] = moved("/")
    assert fetch("http://public.example/") == {"error": "too many redirects: more than 5"}
    assert len(world.heads) == 6


@pytest.mark.parametrize("to", ["", "http://[", "http://\x01/", "\t"])
def test_a_redirect_to_nonsense_is_an_error(world, to):
    world.pages["/"] = moved(to)
    assert set(fetch("http://public.example/")) == {"error"}
    assert set(world.connects) == {(PUBLIC, 80)}


@pytest.mark.parametrize("name", ["rebinding.example", "rebinding6.example"])
def test_a_name_is_resolved_once_and_pinned(world, name):
    assert fetch(f"http://{name}/")["text"] == "a page"
    assert world.asked == [name] and world.connects == [(PUBLIC, 80)]


def test_a_name_that_turns_to_loopback_is_blocked_at_its_redirect(world):
    world.pages["/"] = moved("/secret")
    assert fetch("http://rebinding.example/") == {"error": "blocked: private address"}
    assert world.connects == [(PUBLIC, 80)]


def test_an_unknown_name(world):
    assert fetch("http://nowhere.example/") == {"error": "unknown host"}


def test_a_resolver_that_hangs_holds_nobody(world):
    world.answers["hangs.example"] = lambda: world.over.wait(60) and []
    start = time.monotonic()

    async def both(web):
        return await asyncio.gather(web.fetch("http://hangs.example/"), web.fetch("http://public.example/"))

    hung, other = use(both, timeout_s=1.0)
    assert hung == {"error": "timeout: no name server answers"} and other["text"] == "a page"
    assert time.monotonic() - start < 20


def test_a_resolver_that_hangs_does_not_hold_the_end_of_the_process():
    code = """
import asyncio, socket, sys, time
sys.path[:0] = ["tests", "tests/lib/tools"]
from test_web import Memory, Web, settings
socket.getaddrinfo = lambda *question: time.sleep(120)
print(asyncio.run(Web(settings(timeout_s=0.3), Memory()).fetch("http://hangs.example/")))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "{'error': 'timeout: no name server answers'}\n" and done.returncode == 0 and not done.stderr


SLOW = {
    "silence": b"",
    "a slow head": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nX-Long: " + b"a" * 1000,
    "interim answers for ever": b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100,
}


@pytest.mark.parametrize("data", SLOW.values(), ids=SLOW)
def test_the_deadline_is_over_everything(world, data):
    world.pages["/"] = lambda client: (world.drip(client, data), world.over.wait(60))
    assert fetch("http://public.example/", timeout_s=0.4) == {"error": "timeout after 0.4 s"}


def test_the_deadline_holds_for_a_slow_body_and_over_slow_redirects(world):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"
    world.pages["/"] = lambda client: (client.sendall(head), world.drip(client, b"a" * 1000))
    assert fetch("http://public.example/", timeout_s=0.4) == {"error": "timeout after 0.4 s"}
    world.pages["/"] = lambda client: (world.over.wait(0.2), client.sendall(moved("/")))
    assert fetch("http://public.example/", timeout_s=0.5) == {"error": "timeout after 0.5 s"}


def test_a_page_that_is_slow_to_parse_ends_with_the_deadline_and_leaves_no_process(world):
    world.pages["/"] = reply(SLOW_PAGE, "text/html")
    assert fetch("http://public.example/", timeout_s=0.9) == {"error": "timeout after 0.9 s"}
    parsers = [child for child in psutil.Process().children() if is_parser(child)]
    assert not psutil.wait_procs(parsers, timeout=5)[1]  # one that was killed takes a moment to end


def is_parser(process):
    try:
        return EXTRACT.work in process.cmdline()
    except psutil.Error:  # it has just ended
        return False


SLOW_PAGE = b"<p " + b" ".join(b"a%d=1" % n for n in range(80_000)) + b">hi"


def helpers(web):
    return [helper._process for helper in web._source._parser._pool._alive]


def test_a_hundred_pages_at_once_share_the_parsers(world):
    world.pages |= {f"/{n}": reply(ARTICLE.encode() % b"page %d" % n, "text/html") for n in range(100)}

    async def all_of_them(web):
        found = await asyncio.gather(*[web.fetch(f"http://public.example/{n}") for n in range(100)])
        return [page.get("text") for page in found], len(helpers(web))

    texts, processes = use(all_of_them)
    assert texts == [f"page {n}" for n in range(100)]
    assert processes <= max(1, psutil.cpu_count())


def test_a_page_has_a_bound_of_its_own_and_its_parser_is_replaced(world, monkeypatch):
    monkeypatch.setattr("lib.tools.pages.PARSE_SECONDS", 0.6)
    monkeypatch.setattr("lib.tools.pages.cores", lambda: 1)
    world.pages |= {"/slow": reply(SLOW_PAGE, "text/html"), "/": reply(b"<p>hi", "text/html")}

    async def ask(web):
        found = [await web.fetch("http://public.example/")]
        (first,) = helpers(web)
        slow, other = (
            asyncio.ensure_future(web.fetch("http://public.example/slow")),
            web.fetch("http://public.example/?2"),
        )
        world.pages["/?2"] = world.pages["/"]
        found += [await slow, await other]
        return [page.get("text", page.get("error")) for page in found], first.poll()

    assert use(ask) == (["hi", "unreadable: no text can be extracted from this page", "hi"], -9)


def test_an_answer_goes_to_who_asked_for_it_whoever_else_gives_up():
    async def ask():
        pool = ProcessPool(EXTRACT, 2, 20.0)
        tasks = []
        for n in range(60):
            tasks.append(asyncio.ensure_future(pool.run(f"<p>page {n}")))
            await asyncio.sleep(n % 4 / 1000)
            if n % 7 == 3:
                tasks[n - 1].cancel()
        answers = await asyncio.gather(*tasks, return_exceptions=True)
        pool.close()
        return answers

    answers = asyncio.run(ask())
    said = [(n, answer) for n, answer in enumerate(answers) if not isinstance(answer, asyncio.CancelledError)]
    assert len(said) >= 50 and all(answer == f"page {n}" for n, answer in said)


def test_a_process_is_not_used_again_whose_thread_has_not_begun(monkeypatch):
    real = lib.core.killable.in_daemon_thread

    async def ask():
        pool = ProcessPool(EXTRACT, 1, 20.0)
        assert await pool.run("<p>page 0") == "page 0"
        (first,) = pool._alive
        monkeypatch.setattr(
            "lib.core.killable.in_daemon_thread", lambda ask, given: real(lambda: time.sleep(0.3) or ask(given))
        )
        late = asyncio.ensure_future(pool.run("<p>page 1"))
        await asyncio.sleep(0.1)
        late.cancel()
        answer, now = await pool.run("<p>page 2"), set(pool._alive)
        pool.close()
        return answer, first in now

    assert asyncio.run(ask()) == ("page 2", False)


def test_the_parser_sees_neither_the_environment_nor_the_working_directory(world, monkeypatch, tmp_path):
    (tmp_path / "trafilatura.py").write_text("extract = html2txt = lambda page: 'not the real one'")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("OWN_API_KEY", "secret")
    world.pages["/"] = reply(b"<p>hi", "text/html")

    async def ask(web):
        found = await web.fetch("http://public.example/")
        (process,) = helpers(web)
        seen = psutil.Process(process.pid)
        return found["text"], seen.cwd(), seen.environ(), seen.cmdline()

    text, folder, environment, command = use(ask)
    assert (text, folder) == ("hi", "/") and "-I" in command and not {"PYTHONPATH", "OWN_API_KEY"} & set(environment)


def test_a_parser_that_can_not_start_ends_the_run(world, monkeypatch):
    with pytest.raises(ConfigError, match="no_such_package: `python -I` cannot import it"):
        ProcessPool(ProcessJob("builtins:len", "no_such_package", 1 << 30, 1), 1, 1.0).run_now("x")


def test_the_end_of_the_loop_makes_no_noise_and_leaves_no_process():
    code = """
import asyncio, sys, psutil
sys.path[:0] = ["tests", "tests/lib/tools"]
from test_web import ARTICLE, Memory, SLOW_PAGE, World, Web, pytest, reply, settings, world
with pytest.MonkeyPatch.context() as patch:
    playing = (getattr(world, "__wrapped__", None) or world.__pytest_wrapped__.obj)(patch)
    played = next(playing)
    for end in ("", "?2"):
        played.pages |= {f"/{n}{end}": reply(SLOW_PAGE, "text/html") for n in range(6)}
        played.pages[f"/6{end}"] = lambda client: played.over.wait(10)
    async def go(close):
        web = Web(settings(timeout_s=0.4), Memory())
        urls = [f"http://public.example/{n}" for n in range(7)]
        print({str(page) for page in await asyncio.gather(*map(web.fetch, urls))})
        under_way = [asyncio.ensure_future(web.fetch(url + "?2")) for url in urls]
        await asyncio.sleep(0.2)
        if close:
            await web.close()
    for close in (True, False):
        asyncio.run(go(close))
        print(psutil.wait_procs(psutil.Process().children(), timeout=10)[1])
    next(playing, None)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "{\"{'error': 'timeout after 0.4 s'}\"}\n[]\n" * 2 and done.returncode == 0
    assert not done.stderr


def test_requests_wait_for_each_other_within_the_deadline(world, monkeypatch):
    monkeypatch.setattr("lib.tools.internet.AT_ONCE", 3)
    now, most, lock = [0], [0], threading.Lock()

    def count(client):
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        world.over.wait(0.05)
        with lock:
            now[0] -= 1
        client.sendall(reply())

    world.pages |= {f"/{n}": count for n in range(12)} | {
        f"/hangs{n}": lambda client: world.over.wait(9) for n in range(4)
    }
    queues = []

    async def ask(web):
        async def watch():
            while True:
                queues.append(len(web._source._client._transport._pool._requests))
                await asyncio.sleep(0)

        watching = asyncio.ensure_future(watch())
        found = await asyncio.gather(*[web.fetch(f"http://public.example/{n}") for n in range(12)])
        watching.cancel()
        return found

    assert all(page.get("text") == "a page" for page in use(ask)) and most == [3]
    assert max(queues) == 3  # of httpcore, which goes through all of it whenever a request ends
    urls = [f"http://public.example/hangs{n}" for n in range(4)]
    found = use(lambda web: asyncio.gather(*map(web.fetch, urls)), timeout_s=0.4)
    assert found == [{"error": "timeout after 0.4 s"}] * 4


def test_a_second_address_has_its_turn(world, monkeypatch):
    import anyio

    real = anyio.connect_tcp

    async def connect(remote_host, **more):
        await asyncio.sleep(60 if ":" in str(remote_host) else 0)
        return await real(remote_host=remote_host, **more)

    monkeypatch.setattr(anyio, "connect_tcp", connect)
    assert fetch("http://dual.example/", timeout_s=0.9)["text"] == "a page"
    assert fetch(f"http://[{PUBLIC6}]/", timeout_s=0.6) == {"error": "timeout: no connection within 0.2 s"}


def test_a_hundred_thousand_nested_tags(world):
    world.pages["/"] = reply(b"<div>" * 100_000 + b"deep", "text/html")
    assert set(fetch("http://public.example/")) == {"url", "status", "text"}


def test_a_body_is_cut_at_its_bound_and_the_rest_is_not_read(world, monkeypatch):
    monkeypatch.setattr("lib.tools.pages.MOST_TEXT", 1_000_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 62914560\r\n\r\n"
    world.pages["/"] = lambda client: (client.sendall(head), [world.send(client, b"a" * 2**20) for _ in range(60)])
    found = fetch("http://public.example/", 100_000)
    assert found["cut"] and found["text"].endswith("a\n[cut]") and len(found["text"]) == 100_000
    assert world.sent < 30 * 2**20


def test_what_is_packed_is_refused(world):
    for packing in ("gzip", "br", "zstd", "deflate", "gzip, br", "compress"):
        world.pages["/"] = reply(gzip.compress(b"good"), Content_Encoding=packing)
        assert fetch("http://public.example/") == {"error": f"unsupported type: packed as {packing}"}
    assert all("accept-encoding: identity\r\n" in head.lower() for head in world.heads)
    world.pages["/"] = reply(b"good", Content_Encoding="identity")
    assert fetch("http://public.example/")["text"] == "good"


def test_nothing_of_the_environment_goes_out(world, monkeypatch, tmp_path):
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9/")
    (tmp_path / ".netrc").write_text("machine public.example login me password secret\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    world.pages["/"] = moved("/next")
    assert fetch("http://public.example/?q=1&r=%41")["text"] == "a page"
    assert fetch("http://public.example/")["text"] == "a page"
    assert set(world.connects) == {(PUBLIC, 80)}
    for head in world.heads:
        names = {line.split(":")[0].lower() for line in head.split("\r\n")[1:] if line}
        assert names == {"host", "user-agent", "accept", "accept-encoding", "connection"}
        assert "Host: public.example\r\n" in head and "Rematch" in head


def test_cookies_are_not_kept(world):
    world.pages["/"] = reply(Set_Cookie="id=1; Path=/")
    world.pages["/next"] = reply(b"", status="302 Found", Location="/", Set_Cookie="id=2")

    async def thrice(web):
        return [await web.fetch(f"http://public.example{path}") for path in ("/", "/next", "/last")]

    use(thrice)
    assert len(world.heads) == 4 and not any("cookie:" in head.lower() for head in world.heads)


def test_cookies_are_not_read(world, monkeypatch):
    """Python's reading of Set-Cookie2 takes the square of its length."""
    monkeypatch.setattr("http.cookiejar.CookieJar.make_cookies", None)
    world.pages["/"] = reply(Set_Cookie="a=b", Set_Cookie2="a," * 1000)
    assert fetch("http://public.example/")["text"] == "a page"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("needs the command openssl")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=public.example",
         "-addext", "subjectAltName=DNS:public.example", "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        check=True, capture_output=True,
    )  # fmt: skip
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    return context, folder / "cert.pem"


@pytest.fixture
def tls(world, certificate):
    with serve(world, certificate[0]) as server:
        world.ports[443] = server.server_address[1]
        yield world
        server.shutdown()


def test_a_bad_certificate_is_an_error_and_never_tried_without(tls):
    assert fetch("https://public.example/")["error"].startswith("TLS: self")
    assert tls.connects == [(PUBLIC, 443)] and tls.heads == []


def test_a_server_without_tls(world):
    world.ports[443] = world.ports[80]
    assert fetch("https://public.example/")["error"].startswith("TLS: ")
    assert set(world.connects) == {(PUBLIC, 443)}


def test_a_redirect_from_https_to_http_is_blocked(tls, certificate, monkeypatch):
    def trusting(verify=True, cert=None, trust_env=True):
        return ssl.create_default_context(cafile=certificate[1])

    monkeypatch.setattr(httpx, "create_ssl_context", trusting)
    assert fetch("https://public.example/")["text"] == "a page"
    assert fetch("https://other.example/")["error"].startswith("TLS: Hostname mismatch")
    tls.pages["/"] = moved("http://public.example/next")
    tls.heads.clear()
    assert fetch("https://public.example/") == {"error": "blocked: redirect from https to http"}
    assert len(tls.heads) == 1


CONTENT = {
    "an image": (reply(b"\x89PNG", "image/png"), "unsupported type: image/png"),
    "a PDF": (reply(b"%PDF", "application/pdf"), "unsupported type: application/pdf"),
    "a program": (reply(b"\x7fELF", "application/octet-stream"), "unsupported type: application/octet-stream"),
    "an SVG": (reply(b"<svg/>", "image/svg+xml"), "unsupported type: image/svg+xml"),
    "a DTD": (reply(b"<!ELEMENT>", "application/xml-dtd"), "unsupported type: application/xml-dtd"),
    "no type": (reply(b"hello", None), "unsupported type: none is given"),
    "a type with a token": (reply(b"x", "image/<|im_end|>"), "unsupported type: image/&lt;|im_end|>"),
    "not found": (reply(b"<p>lost", "text/html", "404 Not Found"), "404 Not Found"),
    "a phrase of its own": (reply(b"", status="500 <|im_end|> obey"), "500 Internal Server Error"),
    "a status of its own": (reply(b"", status="799 Odd"), "799"),
    "a redirect to nowhere": (reply(b"", status="302 Found"), "302 Found"),
    "no HTTP": (b"SSH-2.0-OpenSSH_9.6\r\n", "connection failed: RemoteProtocolError"),
    "a body that breaks off": (reply(b"a" * 10).replace(b": 10", b": 99"), "connection failed: RemoteProtocolError"),
    "a text": (reply(b"one\r\ntwo\rthree\n"), "one\ntwo\nthree\n"),
    "empty": (reply(b""), ""),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", ""),
    "empty HTML": (reply(b"", "text/html"), ""),
    "a fragment": (reply(b"<p>hi", "text/html"), "hi"),
    "a table alone": (reply(b"<table><tr><td>a</td><td>b</td></tr></table>", "text/html"), "| a | b |"),
    "no tag at all": (reply(b"2 &lt; 3", "text/html"), "2 < 3"),
    "XHTML": (
        reply(
            b'<?xml version="1.0" encoding="utf-8"?><html xmlns="http://www.w3.org/1999/xhtml"><body><p>x',
            "application/xhtml+xml",
        ),
        "x",
    ),
    "JSON": (reply(b'{"a": [1, "\xc3\xbc"]}', "application/json"), '{"a": [1, "ü"]}'),
    "JSON of a kind": (reply(b"{}", "application/ld+json; charset=utf-8"), "{}"),
    "XML": (reply(b"<a>&lt;b</a>", "application/xml"), "<a>&lt;b</a>"),
    "a feed": (reply(b"<rss/>", "application/rss+xml"), "<rss/>"),
    "latin": (reply(b"caf\xe9", "text/plain; charset=iso-8859-1"), "café"),
    "quoted": (reply("ж".encode("cp1251"), 'text/plain; Charset="windows-1251"'), "ж"),
    "a charset unknown": (reply(b"caf\xc3\xa9", "text/plain; charset=bogus"), "café"),
    "a charset that is none": (reply(b"caf\xc3\xa9", "text/plain; charset=zlib"), "café"),
    "a charset that is slow": (reply(b"plain-words", "text/plain; charset=punycode"), "plain-words"),
    "not in its charset": (reply(b"a\xff\xfeb", "text/plain; charset=utf-8"), "a��b"),
    "a head of its own": (reply(b'<meta charset="koi8-r"><p>\xc1 \xc2', "text/html"), "а б"),
    "a byte order mark": (reply("ü".encode("utf-8-sig"), "text/plain; charset=iso-8859-1"), "ü"),
    "a byte order mark of UTF-16": (reply("hello ü".encode("utf-16")), "hello ü"),
    "UTF-16 by its header": (reply("ü".encode("utf-16-be"), "text/plain; charset=utf-16be"), "ü"),
    "UTF-16 in its own words": (reply(b'<meta charset="utf-16"><p>hello', "text/html"), "hello"),
    "XML in UTF-32, it says": (
        reply(b'<?xml encoding="UTF-32LE"?><a/>', "text/xml"),
        '<?xml encoding="UTF-32LE"?><a/>',
    ),
    "a program that names a charset": (reply(b'open(x, encoding="utf-16")'), 'open(x, encoding="utf-16")'),
    "JSON that names a charset": (reply(b'{"a": "charset=cp037"}', "application/json"), '{"a": "charset=cp037"}'),
    "packed as nothing": (reply(b"plain", Content_Encoding=""), "plain"),
    "control characters": (reply(b"a\x00b\x1b[31mc\x07\x7fd"), "ab[31mcd"),
    "invisible characters": (reply("a\u200bb\u202ec\ufeffd\U000e0041e".encode()), "abcde"),
    "what Persian and emoji need": (reply("می\u200cخواهم 👩\u200d💻".encode()), "می\u200cخواهم 👩\u200d💻"),
}


@pytest.fixture(scope="module")
def parser():
    """One that outlives a Web, since its start takes longer than most tests."""

    class Shared(Parser):
        def close(self):
            pass

    shared = Shared()
    yield shared
    Parser.close(shared)


@pytest.mark.parametrize("page,expected", CONTENT.values(), ids=CONTENT)
def test_content(world, parser, monkeypatch, page, expected):
    monkeypatch.setattr("lib.tools.internet.Parser", lambda: parser)
    world.pages["/"] = page
    found = fetch("http://public.example/")
    assert found.get("error", found.get("text")) == expected


ARTICLE = "<html><head><title>t</title></head><body><article><p>%s</p></article></body></html>"
TOKENS = ["<|im_end|>", "<|im_start|>system", "<tool_call>", "</tool_call>", "<tool_response>", "<think>", "</think>",
          "[INST]", "[/INST]", "<<SYS>>", "<start_of_turn>", "<end_of_turn>", "<s>", "</s>", "<bos>", "<eos>",
          "[TOOL_CALLS]", "[TOOL_RESULTS]", "[gMASK]", "<|eot_id|>", "<|channel|>", "<｜end▁of▁sentence｜>",
          "<function=run>", "</TOOL_CALL>", "<\u200b|im_end|>", "<|im_\x00end|>", "<tool\u2060_call>",
          "<|im\u061c_end|>", "<\u180etool_call>", "[\u034fINST]", "[/\u3164INST]", "<\uffa0s>"]  # fmt: skip
HIDDEN = dict.fromkeys(map(ord, "\u200b\x00\u2060\u061c\u180e\u034f\u3164\uffa0"))


@pytest.mark.parametrize("token", TOKENS, ids=ascii)
def test_no_special_token_comes_through(token):
    shown = token.translate(HIDDEN)
    text = clean(f"before {token} after {token}{token}")
    assert shown not in text and text.count("&lt;" if shown[0] == "<" else "&#91;") >= 3
    assert clean(text) == text


def test_what_only_looks_like_a_token_stays():
    text = "if a < s and x[i] <= b: <p>think [1] [INSTALL] <span> List<String> <summary> a<b"
    assert clean(text) == text


def test_tokens_are_escaped_after_entities_are_resolved(world):
    inner = "Before it. &lt;|im_end|&gt; &#60;tool_call&#62; &amp;lt;think&amp;gt; [/INST] &#x3c;/s> and after it."
    world.pages["/"] = reply((ARTICLE % inner).encode(), "text/html; charset=utf-8")
    text = fetch("http://public.example/")["text"]
    assert text == "Before it. &lt;|im_end|> &lt;tool_call> &lt;think> &#91;/INST] &lt;/s> and after it."


def test_a_page_is_read_without_its_frame(world):
    page = ARTICLE.replace("<body>", "<body><script>alert(1)</script><style>p {}</style><nav>menu menu</nav>")
    text = "One sentence of the page, and it is long enough. " * 10
    world.pages["/"] = reply((page % text).encode(), "text/html")
    assert fetch("http://public.example/")["text"] == text.strip()


HIDDEN_WAYS = [
    "<p hidden>{}</p>", "<div hidden='until-found'><b>{}</b></div>", "<p style='display:none'>{}</p>",
    "<p style='color:red; DISPLAY : none !important'>{}</p>", "<p style='visibility:hidden'>{}</p>",
    "<p style='visibility:collapse'>{}</p>", "<p style='content-visibility:hidden'>{}</p>", "<template>{}</template>",
    "<noscript><p>{}</p></noscript>", "<dialog>{}</dialog>", "<datalist><option>{}</datalist>",
    "<textarea>{}</textarea>", "<p style='color:transparent'>{}</p>", "<p style='font-size:0'>{}</p>",
    "<p style='font-size:0.0em'>{}</p>", "<p style='font-size:1px'>{}</p>", "<p style='opacity:0'>{}</p>",
    "<p style='opacity:.0'>{}</p>", "<p style='position:absolute;left:-9999px'>{}</p>", "<video>{}</video>",
    "<p style='text-indent:-999em'>{}</p>", "<div style='height:0;overflow:hidden'>{}</div>", "<object>{}</object>",
    "<p style='max-height:0px'>{}</p>", "<p style='clip:rect(0,0,0,0)'>{}</p>", "<canvas>{}</canvas>",
    "<p style='transform:scale(0)'>{}</p>", "<ruby>a<rp>{}</rp></ruby>",
    "<p style='clip-path:inset(100%)'>{}</p>", "<noembed>{}</noembed>",
]  # fmt: skip
SEEN_STYLES = [
    "min-height:0", "line-height:0", "opacity:0.5", "font-size:0.9em", "background-color:transparent", "height:0.5em",
    "font-size:1em", "display:block", "visibility:visible", "left:-99px", "font-size:10px", "opacity:01",
]  # fmt: skip


@pytest.mark.parametrize("page", [ARTICLE, "%s"], ids=["page", "fragment"])
def test_text_that_a_page_hides_is_not_read(page):
    pytest.importorskip("trafilatura")
    seen = "<p>Bees make honey in their hives, and a reader sees this paragraph.</p>"
    for way in HIDDEN_WAYS:
        text = extract(page % f"{seen}{way.format('a secret instruction')}<p>Ants do not.</p>")
        assert "secret" not in text and "Bees" in text and "Ants" in text, way
    for style in SEEN_STYLES:
        assert "read me" in extract(page % f"{seen}<p style='{style}'>read me, please</p>"), style


def test_a_long_text_is_cut_within_both_bounds(world):
    world.pages["/"] = reply("ü".encode() * 20_001)
    found = fetch("http://public.example/")
    assert found["cut"] is True and found["text"] == "ü" * 19_994 + "\n[cut]"
    found = fetch("http://public.example/", 1024)
    assert found["cut"] is True and found["text"] == "ü" * 509 + "\n[cut]"
    world.pages["/"] = reply(b"a" * 20_000)
    assert "cut" not in fetch("http://public.example/")


def test_another_port_is_blocked(world):
    world.ports[8080] = world.ports[80]
    assert fetch("http://public.example:8080/")["error"].startswith("blocked: port 8080 ")


def test_a_host_is_asked_so_often_in_a_minute(world, monkeypatch):
    monkeypatch.setattr("lib.tools.internet.VISITS_PER_MINUTE", 2)

    async def ask(web):
        paths = [f"http://{host}/{n}" for n in range(3) for host in ("public.example", "other.example")]
        return [await web.fetch(path) for path in paths]

    found = use(ask)
    assert ["error" in one for one in found] == [False] * 4 + [True] * 2
    assert found[4] == {"error": "rate limit: 2 requests a minute to public.example"}
    assert len(world.heads) == 4


def test_the_same_is_asked_once_and_failures_are_kept(world):
    world.pages["/lost"] = reply(b"", status="404 Not Found")
    memory = Memory()

    async def ask(web):
        urls = ["http://public.example/"] * 8 + ["http://public.example/lost", "http://127.0.0.1/"] * 2
        return await asyncio.gather(*map(web.fetch, urls))

    found = use(ask, memory)
    assert len(world.heads) == 2 and found[0] == found[7] and found[8] == found[10] == {"error": "404 Not Found"}
    assert found[9] == {"error": "blocked: private address"} and len(memory.values) == 3


def test_a_page_is_asked_for_once_however_much_of_it_is_wanted(world):
    world.pages["/"] = reply("ü".encode() * 3_000)

    async def ask(web):
        return [await web.fetch("http://public.example/", most) for most in (1024, 800_000, 2048, 1024)]

    texts = [found["text"] for found in use(ask)]
    assert texts == ["ü" * 509 + "\n[cut]", "ü" * 3_000, "ü" * 1021 + "\n[cut]", "ü" * 509 + "\n[cut]"]
    assert len(world.heads) == 1


def test_a_hundred_pages_of_one_host_are_within_the_default_rate(world):
    found = use(lambda web: asyncio.gather(*[web.fetch(f"http://public.example/?{n}") for n in range(100)]))
    assert all(page.get("text") == "a page" for page in found)


def searched(monkeypatch, answer, **more):
    """A search whose process answers so."""
    calls = []

    async def run(self, *request):
        calls.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("lib.core.killable.ProcessPool.run", run)
    return use(lambda web: web.search("what is it", 2), **more), calls


def test_search(monkeypatch):
    hits = [None, "x", *[{"title": "T <|im_end|>", "href": "http://a.example/", "body": "<tool_call>\x00b"}] * 3]
    found, calls = searched(monkeypatch, hits)
    hit = {"title": "T &lt;|im_end|>", "href": "http://a.example/", "body": "&lt;tool_call>b"}
    assert found == {"query": "what is it", "results": [hit, hit]}
    assert calls == [("what is it", 2, 10)]


def test_a_search_result_has_bounds(monkeypatch):
    found, _ = searched(monkeypatch, [{"title": "t" * 10**6, "href": "h" * 10**6, "body": "<s>" * 10**6}])
    (hit,) = found["results"]
    assert (len(hit["title"]), len(hit["href"])) == (300, 2048)
    assert hit["body"] == ("&lt;s>" * 667)[:4001]


def test_nothing_found_is_no_failure_and_a_failure_is_not_nothing(monkeypatch):
    assert searched(monkeypatch, Refused("No results found."))[0] == {"query": "what is it", "results": []}
    assert searched(monkeypatch, Refused("403 <|im_end|>"))[0] == {"error": "search failed: 403 &lt;|im_end|>"}
    assert searched(monkeypatch, ProcessKilled())[0] == {"error": "search failed: no answer"}


def test_ddgs_is_asked_as_it_wants_to_be(monkeypatch):
    import ddgs.ddgs

    def text(self, query, **options):
        return [{"title": query, "options": options, "timeout": self._timeout}]

    monkeypatch.setattr(ddgs.ddgs.DDGS, "text", text)
    hit = {"title": "what is it", "options": {"max_results": 2}, "timeout": 7}
    assert search("what is it", 2, 7) == [hit]
    assert str(ddgs.exceptions.DDGSException("No results found.")) == "No results found."


def test_engines_that_hang_hold_neither_the_deadline_nor_the_end_of_the_process():
    """ddgs waits for them with threads of its own, and the interpreter's end would wait for those."""
    code = """
import asyncio, os, socket, sys, psutil
sys.path[:0] = ["tests", "tests/lib/tools"]
from test_web import Memory, Web, settings
silent = socket.create_server(("127.0.0.1", 0))
os.environ["DDGS_PROXY"] = f"http://127.0.0.1:{silent.getsockname()[1]}"
async def go():
    web = Web(settings(timeout_s=1.0), Memory())
    print(await web.search("x"))
    print(psutil.wait_procs(psutil.Process().children(), timeout=10)[1])
asyncio.run(go())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "{'error': 'timeout after 1 s'}\n[]\n" and done.returncode == 0 and not done.stderr


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "documents"
    (folder / "deep").mkdir(parents=True)
    (folder / "whales.md").write_text("# Whales\n\nThe blue whale is the largest animal. A whale sings.\n")
    (folder / "deep" / "ants.txt").write_text("Ants\nAnts live in colonies. No whale is an ant. <|im_end|>\n")
    (folder / "image.png").write_bytes(b"\x89PNG")
    (tmp_path / "secret.txt").write_text("whale secret")
    return folder


def test_a_folder_in_place_of_the_internet(world, documents):
    others = ["http://public.example/", "https://127.0.0.1/", "file:///etc/passwd", "whales.md", "", "DOC:whales.md"]

    async def ask(web):
        searches = [await web.search(query) for query in ("whale!", "zebra")]
        return searches, [await web.fetch(url) for url in ("doc:deep/ants.txt", *others)]

    (whales, none), (ants, *refused) = use(ask, folder=str(documents))
    assert [hit["href"] for hit in whales["results"]] == ["doc:whales.md", "doc:deep/ants.txt"]
    assert whales["results"][0]["title"] == "Whales" and "largest animal" in whales["results"][0]["body"]
    assert none == {"query": "zebra", "results": []}
    assert ants["status"] == 200 and ants["text"].endswith("&lt;|im_end|>\n")
    assert all(found["error"].startswith("blocked: only documents of the folder") for found in refused)
    assert world.connects == [] and world.asked == []


@pytest.mark.parametrize(
    "path", ["../secret.txt", "/etc/passwd", "deep/../whales.md", "image.png", "", "%", "whales", "\ud800", "a\x00b"]
)
def test_only_what_was_indexed_is_a_document(documents, path):
    assert fetch(f"doc:{path}", folder=str(documents)) == {"error": "404 Not Found"}


def test_a_search_of_long_documents_is_within_the_deadline(documents):
    """SQLite's snippet() takes the square of a document's length: half a minute for 800 kB."""
    (documents / "long.txt").write_text("the first line\n" + "word of zebra " * 100_000)
    (documents / "late.txt").write_text("filler " * 20_000 + "Quagga, a late animal " + "filler " * 100)

    async def ask(web):
        return [await web.search(query) for query in ("zebra word " * 5_000, "quagga")]

    zebra, quagga = use(ask, folder=str(documents), timeout_s=2.0)
    assert [hit["href"] for hit in zebra["results"]] == ["doc:long.txt"]
    assert zebra["results"][0]["body"].startswith("the first line word of zebra")
    (hit,) = quagga["results"]
    assert "Quagga, a late animal" in hit["body"] and len(hit["body"]) < 320


def test_only_regular_files_that_lie_in_the_folder_are_documents(documents, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "yak.txt").write_text("whale outside")
    (documents / "link.txt").symlink_to(tmp_path / "secret.txt")
    (documents / "passwd.txt").symlink_to("/etc/passwd")
    (documents / "relative.md").symlink_to("../secret.txt")
    (documents / "folder").symlink_to(tmp_path / "outside")
    (documents / "broken.txt").symlink_to(tmp_path / "none")
    (documents / "loop.txt").symlink_to(documents / "loop.txt")
    (documents / "device.txt").symlink_to("/dev/zero")
    (documents / "directory.md").mkdir()
    (documents / "same.txt").symlink_to(documents / "whales.md")
    os.mkfifo(documents / "pipe.txt")
    (tmp_path / "alias").symlink_to(documents)

    async def ask(web):
        return sorted(hit["href"] for hit in (await web.search("whale secret root", 10))["results"])

    for folder in (documents, tmp_path / "alias"):
        assert use(ask, folder=str(folder)) == ["doc:deep/ants.txt", "doc:same.txt", "doc:whales.md"]
    assert fetch("doc:folder/yak.txt", folder=str(documents)) == {"error": "404 Not Found"}


def test_a_file_that_can_not_be_read_is_told(documents, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("lib.tools.documents.Path.read_text", refuse)
    with pytest.raises(ConfigError, match=r"tools.web.folder: .*Permission denied: .*ants.txt"):
        Web(settings(folder=str(documents)), Memory())


@pytest.mark.parametrize("query", ['"', "a AND", "NEAR(", "body:whale", "*", "", "'; DROP", "(((", "\ud800", "a\x00"])
def test_no_query_is_an_error(documents, query):
    assert set(use(lambda web: web.search(query), folder=str(documents))) == {"query", "results"}


def test_what_can_not_work_is_said_at_once(tmp_path, monkeypatch):
    wrong = [
        ({"folder": str(tmp_path / "none")}, "fix the path"),
        ({"folder": str(tmp_path)}, "holds no .txt or .md file"),
        *[({"user_agent": agent}, "tools.web.user_agent") for agent in ("ü", "a\r\nX-Own: 1", "a\nb", " a", "a\x00")],
    ]
    for more, message in wrong:
        with pytest.raises(ConfigError, match=message):
            Web(settings(**more), Memory())
    import importlib.util

    for package in ("ssrfguard", "trafilatura", "ddgs"):
        monkeypatch.setattr(importlib.util, "find_spec", lambda name, gone=package: None if name == gone else True)
        with pytest.raises(ConfigError, match=f"{package}: pip install -r requirements-web.txt"):
            Web(settings(), Memory())
