"""Plain HTTP/1.1 over a socket, so that every byte of a response can be compared; and the masks for that."""

import json
import re
import socket
from dataclasses import dataclass

DEADLINE = 120.0

# Heads of one hop only, or that a clock writes.
HOP_HEADERS = {b"connection", b"keep-alive", b"transfer-encoding", b"date"}


@dataclass
class Response:
    """One response as it came off the socket, its chunk framing taken away."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes
    whole: bool
    """Whether the framing says that nothing is missing."""


def post(port, path, body, *, request_id=None, stop_after=None, midway=None):
    """Sends a JSON body on a connection of its own and reads to the end, or hangs up after some bytes of the answer.
    `midway` is called once, after the first 4,000 bytes."""
    payload = json.dumps(body, ensure_ascii=False).encode()
    head = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Accept: */*",
        "Content-Type: application/json",
        f"Content-Length: {len(payload)}",
        "Connection: close",
    ]
    if request_id:
        head.append(f"X-Request-Id: {request_id}")
    data = bytearray()
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE) as connection:
        connection.sendall("\r\n".join(head).encode() + b"\r\n\r\n" + payload)
        while part := connection.recv(65536):
            data += part
            if midway and len(data) >= 4000:
                midway()
                midway = None
            if stop_after is not None and len(data) >= stop_after:
                break
    return parse(bytes(data))


def parse(data):
    """Takes a response apart."""
    head, _, rest = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    if not lines[0].startswith(b"HTTP/1.1 "):
        raise ValueError(f"no HTTP/1.1 response: {data[:80]!r}")
    headers = [tuple(line.split(b": ", 1)) for line in lines[1:]]
    names = {name.lower(): value for name, value in headers}
    status = int(lines[0].split(b" ")[1])
    if names.get(b"transfer-encoding", b"").lower() != b"chunked":
        length = names.get(b"content-length")
        return Response(status, headers, rest, length is None or int(length) == len(rest))
    body = bytearray()
    while True:
        size, found, rest = rest.partition(b"\r\n")
        if not found or len(rest) < int(size, 16) + 2:
            return Response(status, headers, bytes(body), False)
        if int(size, 16) == 0:
            return Response(status, headers, bytes(body), True)
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]


def masked(body):
    """The body without what differs from one answer to the next of the same server: the time and random ids."""
    body = re.sub(rb'"(created|created_at|completed_at)":\s?\d+(\.\d+)?', rb'"\1":0', body)
    return re.sub(rb"\b(chatcmpl-tool-|call_|resp_|msg_|rs_|fc_)[0-9a-f]+", rb"\1x", body)


def head(response):
    """Status and end-to-end headers in their order and case."""
    headers = [(name, value) for name, value in response.headers if name.lower() not in HOP_HEADERS]
    return response.status, headers


def comparable(response, sequences=1):
    """What must be the same with and without something in between: the head and the body. Several sequences run side
    by side, so only the order within each of them is fixed."""
    body = masked(response.body)
    if sequences > 1 and body.startswith(b"data:"):
        events = body.split(b"\n\n")
        body = b"\n\n".join(sorted(events, key=sequence_of))
    # Masks keep no length, but ids and times have a fixed one, so the lengths must agree as well.
    return *head(response), len(response.body), body, response.whole


def whole_events(body):
    """The events of a stream that was cut somewhere, without a last unfinished one."""
    return masked(body).split(b"\n\n")[:-1]


def finish(body):
    """The finish event of a stream, without the text that happened to be in it."""
    for event in whole_events(body):
        if event.startswith(b"data: {") and (value := json.loads(event[6:])).get("choices"):
            if value["choices"][0]["finish_reason"]:
                value["choices"][0].pop("delta")
                return value
    return None


def sequence_of(event):
    """The choice that an event belongs to; what belongs to none stands last."""
    index = re.search(rb'"choices":\[\{"index":(\d+)', event)
    return int(index.group(1)) if index else 1 << 30


def payload(response):
    """`metrics.speculative_decoding` of a response, streamed or not; None where there is none."""
    if response.body.startswith(b"data:"):
        datas = [line[6:] for line in response.body.split(b"\n") if line.startswith(b"data: {")]
    else:
        datas = [response.body]
    for data in reversed(datas):
        found = (json.loads(data).get("metrics") or {}).get("speculative_decoding")
        if found is not None:
            return found
    return None
