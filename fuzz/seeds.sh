#!/bin/sh
# Makes the first inputs of every fuzz target from the fixtures of the tests: fuzz/seeds.sh FOLDER
# One folder for each target. An input is two bytes, which say how it is run and cut, and then its text.
set -eu
exec "${PYTHON:-python3}" - "$(cd "$(dirname "$0")/.." && pwd)" "$1" <<'EOF'
import gzip
import hashlib
import json
import pathlib
import sys

ROOT, TO = map(pathlib.Path, sys.argv[1:])
FIXTURES = ROOT / "tests/fixtures"
SAMPLES = FIXTURES / "samples"
LARGEST = 4 << 10
SHAPES = set()

# Members that hold a payload, by the target that reads it and the number of its place there.
PLACES = {
    "speculative_decoding": [("adapter_vllm", 0), ("adapter_tensorrt_llm", 0)],
    "speculative_decoding_stats": [("adapter_vllm", 1), ("adapter_sglang", 2)],
    "spec_tokens_details": [("adapter_sglang", 0)],
    "meta_info": [("adapter_sglang", 1), ("adapter_others", 1)],
    "timings": [("adapter_llamacpp", 0), ("adapter_others", 0)],
    "generation_metadata": [("adapter_others", 2)],
    "stats": [("adapter_others", 3)],
    "usage": [("adapter_others", 4)],
    "completion_tokens_details": [("adapter_others", 5)],
}


def seed(target, how, text, cuts=0):
    """Writes one input; the same input twice is one file."""
    if len(text) > LARGEST:
        return
    content = bytes([how, cuts]) + text
    folder = TO / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / hashlib.sha1(content).hexdigest()[:16]).write_bytes(content)


def dechunked(body):
    """A chunked body's data."""
    data = b""
    while body:
        size, _, body = body.partition(b"\r\n")
        size = int(size, 16)
        data += body[:size]
        body = body[size + 2 :]
        if size == 0:
            break
    return data


def captured():
    """One body of each kind of capture."""
    kinds = set()
    for file in sorted(FIXTURES.glob("captures/*/*/*.http")):
        head, _, body = file.read_bytes().partition(b"\r\n\r\n")
        if file.name not in kinds and (b"/json" in head or b"event-stream" in head):
            kinds.add(file.name)
            yield dechunked(body) if b"chunked" in head else body


def shape(value):
    """A value without what it says: one event of a kind is enough."""
    if isinstance(value, list):
        return [shape(item) for item in value[:2]]
    if isinstance(value, dict):
        return {name: shape(inner) for name, inner in value.items()}
    return type(value).__name__


def payloads(value, found):
    """Every payload in a parsed text, by the name of its member."""
    if isinstance(value, list):
        for item in value:
            payloads(item, found)
    elif isinstance(value, dict):
        for name, inner in value.items():
            if name in PLACES:
                # SGLang's extension has a list for several sequences.
                found.setdefault(name, []).extend(inner if isinstance(inner, list) else [inner])
            payloads(inner, found)


def response(body):
    """Seeds of one response's body, stream or JSON."""
    is_stream = not body.lstrip()[:1] in (b"{", b"[")
    texts = [body]
    if is_stream:
        # A stream cut in the middle of an event still says how it begins.
        body = body[:LARGEST]
        seed("splitter", 0, body)
        seed("splitter", 100, body, 1)
        for how, cuts in ((0, 0), (4, 1), (2, 2)):
            seed("reply", how, body, cuts)
        for how in (1, 2, 3, 5, 9):
            seed("strip", how, body, how)
        lines = body.splitlines()
        texts = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    else:
        seed("reply", 1, body)
        seed("reply", 3, body)
    found = {}
    for text in texts:
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if str(shape(value)) not in SHAPES:
            SHAPES.add(str(shape(value)))
            seed("scanner", 0, text)
            seed("needle", 0, text)
        payloads(value, found)
    for name, values in found.items():
        lines = [json.dumps(value, separators=(",", ":")).encode() for value in values]
        for target, place in PLACES[name]:
            for line in lines:
                seed(target, place, line)
                seed(target, 128 + place, line)
            seed(target, place, b"\n".join(lines[:4]))
            seed(target, 64 + place, b"\n".join(lines[:4]), 2)
    for coding in range(4):
        seed("decoder", 128 + coding, body[:400])
        seed("decoder", 192 + coding, body[:400], 30)


def request(path, body):
    """Seeds of one request's body and of the message around it."""
    for how in (0, 1, 2, 4, 12):
        seed("splice", how, body)
    head = f"POST {path} HTTP/1.1\r\nHost: engine:8000\r\nContent-Type: application/json\r\n".encode()
    length = b"Content-Length: %d\r\n\r\n" % len(body)
    chunked = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    for how in (0, 1):
        seed("heads", how, head + length + body)
        seed("heads", how, head + b"Expect: 100-continue\r\n" + chunked, 1)
        seed("heads", how, 2 * (head + length + body), 3)


for file in sorted(SAMPLES.rglob("*")):
    if file.suffix in (".json", ".sse") and "chunks" not in file.name:
        response(file.read_bytes())
    elif file.suffix == ".gz":
        seed("decoder", 0, file.read_bytes())
        response(gzip.decompress(file.read_bytes()))
for body in captured():
    response(body)
for line in (SAMPLES / "requests/cases.jsonl").read_text().splitlines():
    case = json.loads(line)
    request(case["path"], case["in"].encode())
kinds = set()
for file in sorted(FIXTURES.glob("captures/*/*/*.request.json")):
    if file.name not in kinds:
        kinds.add(file.name)
        request("/v1/completions", file.read_bytes())

seed("scanner", 255, b'{"usage":[0,1,1', 255)
seed("scanner", 255, b'{"choices":[{"index":0,"text":"a"},{"index":0,"text":"a"},', 255)
seed("strip", 255, b'data: {"choices":[],"usage":{}}\n\ndata: {"choices":[]}\n\n', 1)
seed("strip", 255, b'data: {"choices":[{"finish_reason":"stop"}]}\n\n: a\n\n: a\n\n: a\n\n: a\n\n:', 1)
for head in (
    b"GET / HTTP/1.1\r\nHost: a\r\n\r\nHEAD /b?c=%20 HTTP/1.1\r\nHOST: a\r\nX: 1\r\nx: 2\r\nConnection: x, close\r\n\r\n",
    b"GET http://b:1/c?d HTTP/1.1\r\nHost: a\r\nTE: trailers, deflate;q=0.5\r\nConnection: te\r\n\r\n",
    b"POST /v1/x HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n3;e=f\r\nabc\r\n0\r\nT: u\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"POST /a HTTP/1.0\r\nContent-Length: 2\r\n\r\nok",
    b"GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, Keep-Alive\r\nUpgrade: websocket\r\nKeep-Alive: timeout=5\r\n\r\n",
    b"PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\n\r\n",
):
    seed("heads", 0, head)
    seed("heads", 1, head, 1)
for file in sorted([*FIXTURES.glob("captures/*/metrics*.http"), *FIXTURES.glob("captures/*/*/metrics*.http"), *FIXTURES.glob("samples/*/metrics.prom")]):
    body = file.read_bytes().partition(b"\r\n\r\n")[2] or file.read_bytes()
    lines = [line for line in body.splitlines() if b"spec_" in line or b"_tokens_total" in line or b"process_start" in line]
    seed("exposition", 0, b"\n".join(lines)[:LARGEST], 128)
EOF
