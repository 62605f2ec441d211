"""A real gRPC server and client, for the test that calls pass through spectap.

    grpc_peer.py serve [CERTIFICATE KEY]         a server; prints its port, ends with its standard input
    grpc_peer.py call DIRECT THROUGH [AUTHORITY] the same calls to both ports; ends with 1 at the first difference

With files it is TLS. Messages are bytes, so that nothing has to be generated.
"""

import concurrent.futures
import pathlib
import sys
import threading

import grpc

SERVICE = "package.Service"
PATIENCE = 20


class Handlers:
    """The methods of the service."""

    def __init__(self):
        self.cancelled = threading.Event()

    def unary(self, request, context):
        context.send_initial_metadata((("x-initial", "1"), ("x-initial-bin", b"\x00\xff")))
        sent = {key: value for key, value in context.invocation_metadata()}
        context.set_trailing_metadata((("x-trailing-bin", sent.get("x-sent-bin", b"none")),))
        return request[::-1]

    def fail(self, request, context):
        context.set_trailing_metadata((("x-why", "asked"),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "as said: ünïcode % \n")

    def download(self, request, context):
        for number in range(int(request)):
            yield b"%d " % number * 1000

    def upload(self, requests, context):
        return b"%d" % sum(len(request) for request in requests)

    def talk(self, requests, context):
        for request in requests:
            yield request.upper()

    def broken(self, request, context):
        yield b"first"
        context.abort(grpc.StatusCode.DATA_LOSS, "in the middle")

    def endless(self, request, context):
        context.add_callback(self.cancelled.set)
        yield b"first"
        self.cancelled.wait(PATIENCE)

    def was_cancelled(self, request, context):
        seen = self.cancelled.wait(PATIENCE)
        self.cancelled.clear()
        return b"yes" if seen else b"no"

    def slow(self, request, context):
        threading.Event().wait(1)
        return b"late"

    def service(self):
        methods = {
            "Unary": grpc.unary_unary_rpc_method_handler(self.unary),
            "Fail": grpc.unary_unary_rpc_method_handler(self.fail),
            "Download": grpc.unary_stream_rpc_method_handler(self.download),
            "Upload": grpc.stream_unary_rpc_method_handler(self.upload),
            "Talk": grpc.stream_stream_rpc_method_handler(self.talk),
            "Broken": grpc.unary_stream_rpc_method_handler(self.broken),
            "Endless": grpc.unary_stream_rpc_method_handler(self.endless),
            "WasCancelled": grpc.unary_unary_rpc_method_handler(self.was_cancelled),
            "Slow": grpc.unary_unary_rpc_method_handler(self.slow),
        }
        return grpc.method_handlers_generic_handler(SERVICE, methods)


def serve(certificate=None, key=None):
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(32))
    server.add_generic_rpc_handlers((Handlers().service(),))
    if certificate:
        pair = tuple(pathlib.Path(file).read_bytes() for file in (key, certificate))
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    else:
        port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(0).wait()


def outcome(call, answer=None):
    """What a client can see of a call that has ended."""
    return {
        "answer": answer,
        "code": call.code(),
        "details": call.details(),
        "initial": sorted(pair for pair in call.initial_metadata()),
        "trailing": sorted(pair for pair in call.trailing_metadata()),
    }


def unary(channel, method, request, **options):
    call = channel.unary_unary(f"/{SERVICE}/{method}")
    try:
        answer, call = call.with_call(request, timeout=options.pop("timeout", PATIENCE), **options)
        return outcome(call, answer)
    except grpc.RpcError as error:
        return outcome(error)


def stream(channel, method, request):
    call = channel.unary_stream(f"/{SERVICE}/{method}")(request, timeout=PATIENCE)
    got = []
    try:
        got.extend(call)
    except grpc.RpcError:
        pass
    return outcome(call, got)


def upload(channel):
    call = channel.stream_unary(f"/{SERVICE}/Upload")
    answer, call = call.with_call(iter([b"x" * 100_000] * 30), timeout=PATIENCE)
    return outcome(call, answer)


def talk(channel, words=8):
    """Each word goes out only after the answer to the one before has come."""
    turn = threading.Semaphore(1)

    def requests():
        for number in range(words):
            turn.acquire(timeout=PATIENCE)
            yield b"word %d" % number

    call = channel.stream_stream(f"/{SERVICE}/Talk")(requests(), timeout=PATIENCE)
    got = []
    for answer in call:
        got.append(answer)
        turn.release()
    return outcome(call, got)


def talks(channel):
    """Many conversations at the same time."""
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        return [found["answer"] for found in pool.map(lambda _: talk(channel), range(24))]


def cancel(channel):
    call = channel.unary_stream(f"/{SERVICE}/Endless")(b"", timeout=PATIENCE)
    first = next(call)
    call.cancel()
    return first, unary(channel, "WasCancelled", b"")["answer"]


CASES = {
    "unary": lambda channel: unary(channel, "Unary", b"abc", metadata=(("x-sent-bin", b"\x01\x00\xfe"),)),
    "a large message": lambda channel: unary(channel, "Unary", bytes(range(256)) * 8192),
    "compressed": lambda channel: unary(channel, "Unary", b"a" * 9999, compression=grpc.Compression.Gzip),
    "an error status": lambda channel: unary(channel, "Fail", b""),
    "no such method": lambda channel: unary(channel, "Missing", b""),
    "a stream of the server": lambda channel: stream(channel, "Download", b"300"),
    "an empty stream": lambda channel: stream(channel, "Download", b"0"),
    "a stream that fails": lambda channel: stream(channel, "Broken", b""),
    "a stream of the client": upload,
    "a conversation": talk,
    "conversations": talks,
    "a cancellation": cancel,
    "a deadline": lambda channel: unary(channel, "Slow", b"", timeout=0.2)["code"],
}


def channel_to(port, authority):
    options = [("grpc.max_receive_message_length", -1)]
    if not authority:
        return grpc.insecure_channel(f"127.0.0.1:{port}", options=options)
    trusted = grpc.ssl_channel_credentials(pathlib.Path(authority).read_bytes())
    return grpc.secure_channel(f"localhost:{port}", trusted, options=options)


def call(direct, through, authority=None):
    for name, case in CASES.items():
        found = []
        for port in (direct, through):
            with channel_to(port, authority) as channel:
                found.append(case(channel))
        if found[0] != found[1]:
            print(f"{name}: direct {found[0]!r:.2000}\nthrough {found[1]!r:.2000}")
            return 1
        print(f"{name}: {found[0]!r:.120}")
    if found[0] != grpc.StatusCode.DEADLINE_EXCEEDED:
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(*sys.argv[2:])
    else:
        sys.exit(call(*sys.argv[2:]))
