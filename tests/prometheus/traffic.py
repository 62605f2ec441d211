"""Clients that send chat requests of a known mix, and an engine with faults for what an honest one never sends."""

import concurrent.futures
import gzip
import http.client
import http.server
import json
import random
import threading


def send(address, body, headers=None):
    """One request, read to its end; gives its status, or nothing where none came whole."""
    connection = http.client.HTTPConnection(address, timeout=30)
    body = body if isinstance(body, (str, bytes)) else json.dumps(body)
    try:
        connection.request("POST", "/v1/chat/completions", body, {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    except (http.client.HTTPException, OSError):
        return None
    finally:
        connection.close()


def chat(model, max_tokens, **more):
    return {"model": model, "messages": [{"role": "user", "content": "count"}], "max_tokens": max_tokens, **more}


def mixed(models, number, seed):
    """Requests of all kinds: streamed and not, tagged and not, some of one token, with a stop string, or of two sequences."""
    rng = random.Random(seed)
    for index in range(number):
        body = chat(models[index % len(models)], rng.choice([1, 16, 48, 96]), stream=rng.random() < 0.7)
        kind = rng.random()
        if kind < 0.05:
            body["n"] = 2
        elif kind < 0.1:
            body["stop"] = [" batch"]
        tag = rng.choice([None, "math", "code"])
        yield body, {"X-Spectap-Tag": tag} if tag else {}


def send_all(wanted, clients=8):
    """Sends (address, body, headers) from several threads; gives the statuses."""
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        return list(pool.map(lambda one: send(*one), wanted))


class Faulty(http.server.BaseHTTPRequestHandler):
    """An engine that answers as the model that is asked for says."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        kind = asked["model"]
        if kind == "closed":
            self.close_connection = True
            return
        body = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": "faulty",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "a b c"}, "finish_reason": "length"}],
            "usage": {"prompt_tokens": 3, "completion_tokens": 7, "total_tokens": 10},
            "metrics": {"speculative_decoding": payload(kind)},
        }
        text, extra = json.dumps(body), {}
        if kind == "not_json":
            text = text[:40] + "!"
        data = text.encode()
        if kind == "compressed":
            event = {"id": "c", "object": "chat.completion.chunk", "model": "faulty"}
            delta = {"index": 0, "delta": {"content": "a"}, "finish_reason": "stop"}
            data = gzip.compress(f"data: {json.dumps({**event, 'choices': [delta]})}\n\ndata: [DONE]\n\n".encode())
            extra = {"Content-Encoding": "gzip", "Content-Type": "text/event-stream"}
        self.send_response(200)
        for name, value in {"Content-Type": "application/json", **extra, "Content-Length": len(data)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self):
        self.send_error(404)

    def log_message(self, *_):
        pass


def payload(kind):
    """A vLLM payload of two steps with 3 of 8 drafts accepted, wrong in one way."""
    honest = {
        "acceptance_histogram": [0, 1, 1, 0, 0],
        "num_spec_steps": 2,
        "mean_acceptance_length": 2.5,
        "draft_acceptance_rate": 0.375,
        "num_accepted_draft_tokens": 3,
        "num_draft_tokens": 8,
        "num_spec_tokens": 4,
    }
    if kind == "identity_sum":
        honest["num_spec_steps"] = 3
    if kind == "mean_or_rate":
        honest["mean_acceptance_length"] = 9.0
    return honest


class FaultyEngine:
    """It, on a free port, until the block ends."""

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Faulty)
        self.server.daemon_threads = True
        self.address = f"127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
