#!/usr/bin/env python3
"""A made-up OpenAI-compatible server that reports speculative decoding as vLLM or TensorRT-LLM does.

It runs no model. One content chunk is sent per verify step, with that step's tokens; the first chunk holds the one
token of the prefill. The payload stands where the engine puts it: vLLM's at the root of the usage event, which comes
only when the request asks for usage; TensorRT-LLM's in the choice that finishes. Everything that was sent is written
to a log, one line per request, so that every number in any reader of the stream can be recomputed.
"""

import argparse
import asyncio
import json
import random
import time

import decode
from aiohttp import web


class Engine:
    """The server's state: how many requests came, and what they were answered."""

    def __init__(self, options):
        self.options, self.count = options, 0
        self.kinds = decode.schedule(options)
        self.log = open(options.log, "w", encoding="utf-8")
        self.release = asyncio.Event()
        # From a start that is not zero, so that a scraper that takes no differences is found out.
        self.counters = {"num_drafts": 1000, "num_draft_tokens": 5000, "num_accepted_tokens": 2000}

    async def infer(self, request):
        received = time.time_ns()
        body = await request.json()
        index, self.count = self.count, self.count + 1
        if self.count == self.options.hold:
            print(f"holding request {self.count}", flush=True)
            await self.release.wait()
        kind = self.kinds[index % len(self.kinds)]
        most_tokens = body.get("max_completion_tokens") or body.get("max_tokens") or 128
        sequences = [decode.simulate(self.options, kind, index, most_tokens, i) for i in range(int(body.get("n") or 1))]
        reply = Reply(self.options, body, request.path, index, kind, sequences)
        reply.entry |= {"x_request_id": request.headers.get("X-Request-ID"), "t_recv_ns": received}
        answer = await (reply.stream(request) if body.get("stream") else reply.whole())
        self.log.write(json.dumps({**reply.entry, "t_done_ns": time.time_ns()}) + "\n")
        self.log.flush()
        if kind != "refused":
            for sequence in sequences:
                self.counters["num_drafts"] += len(sequence["accepted"])
                self.counters["num_draft_tokens"] += sum(sequence["drafted"])
                self.counters["num_accepted_tokens"] += sum(sequence["accepted"])
        return answer

    async def metrics(self, _):
        lines = []
        if self.options.engine == "vllm":
            for name, value in self.counters.items():
                lines.append(f"# HELP vllm:spec_decode_{name}_total x")
                lines.append(f"# TYPE vllm:spec_decode_{name}_total counter")
                lines.append(f'vllm:spec_decode_{name}_total{{engine="0",model_name="m"}} {float(value)}')
        return web.Response(text="\n".join(lines) + "\n", content_type="text/plain")

    async def let_go(self, _):
        self.release.set()
        return web.Response()

    async def models(self, _):
        return web.json_response({"object": "list", "data": [{"id": "made-up", "object": "model", "owned_by": "x"}]})


class Reply:
    """One answer, whole or streamed, and its line in the log."""

    def __init__(self, options, body, path, index, kind, sequences):
        self.options, self.kind, self.sequences, self.index = options, kind, sequences, index
        self.is_chat = path.endswith("/chat/completions")
        self.payloads = [decode.payload(options, kind, sequence) for sequence in sequences]
        if options.engine == "vllm" and len(sequences) > 1:
            self.payloads = [None] * len(sequences)
        prompt = json.dumps(body.get("messages") or body.get("prompt") or "")
        self.usage = {
            "prompt_tokens": max(1, len(prompt) // 4),
            "completion_tokens": sum(sequence["completion_tokens"] for sequence in sequences),
        }
        self.usage["total_tokens"] = sum(self.usage.values())
        self.include_usage = bool((body.get("stream_options") or {}).get("include_usage"))
        self.name = "chat.completion" if self.is_chat else "text_completion"
        self.base = {
            "id": f"{'chatcmpl' if self.is_chat else 'cmpl'}-{index:08x}",
            "object": self.name + ".chunk" if self.is_chat and body.get("stream") else self.name,
            "created": int(time.time()),
            "model": body.get("model", "made-up"),
        }
        self.entry = {
            "index": index,
            "kind": kind,
            "engine": options.engine,
            "stream": bool(body.get("stream")),
            "n": len(sequences),
            "include_usage": self.include_usage,
            "usage": self.usage,
            "steps_accepted": [sequence["accepted"] for sequence in sequences],
            "steps_drafted": [sequence["drafted"] for sequence in sequences],
            "payloads": self.payloads,
            "t_chunks_ns": [],
        }

    def with_payload(self, chunk, choice, at):
        """The chunk, with the payload of that choice if this is where the engine puts it."""
        report = self.payloads[choice]
        if report == "absent":
            return chunk
        if self.options.engine == "vllm" and at in ("usage", "whole"):
            chunk["metrics"] = {"speculative_decoding": report}
        elif self.options.engine == "trtllm" and at in ("finish", "whole"):
            chunk["choices"][choice if at == "whole" else 0]["speculative_decoding"] = report
        return chunk

    async def whole(self):
        await asyncio.sleep(self.options.ttft)
        if self.kind == "refused":
            return web.json_response({"error": {"message": "overloaded", "type": "x", "code": 503}}, status=503)
        choices = []
        for number, sequence in enumerate(self.sequences):
            text = words(sequence["completion_tokens"])
            content = {"message": {"role": "assistant", "content": text}} if self.is_chat else {"text": text}
            choices.append({"index": number, **content, "logprobs": None, "finish_reason": "stop"})
        chunk = {**self.base, "choices": choices, "usage": self.usage}
        for number in range(len(self.sequences)):
            self.with_payload(chunk, number, "whole")
        return web.json_response(chunk)

    def chunk(self, choice, text=None, finish=None, role=None):
        """An event of one choice."""
        content = {"text": text or ""}
        if self.is_chat:
            delta = {"role": role} if role else {}
            content = {"delta": delta if text is None else {**delta, "content": text}}
        return {**self.base, "choices": [{"index": choice, **content, "logprobs": None, "finish_reason": finish}]}

    async def stream(self, request):
        if self.kind == "refused":
            return await self.whole()
        self.answer = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
        await self.answer.prepare(request)
        if self.is_chat:
            await self.send(self.chunk(0, "", role="assistant"))
        await asyncio.sleep(self.options.ttft)
        # A silent answer has numbers and no text, as if all its tokens were special ones.
        if self.kind != "silent":
            await asyncio.gather(*(self.decode(number) for number in range(len(self.sequences))))
        for number in range(len(self.sequences)):
            finish = "length" if self.kind == "zero" else "stop"
            await self.send(self.with_payload(self.chunk(number, finish=finish), number, "finish"))
        if self.include_usage:
            await self.send(self.with_payload({**self.base, "choices": [], "usage": self.usage}, 0, "usage"))
        if self.kind == "cut":
            # Everything is said but the end of the body: the client sees a broken transfer.
            request.transport.close()
            return self.answer
        if self.kind == "error_event":
            await self.send({"error": {"message": "engine failed", "type": "x", "code": 500}})
        await self.answer.write(b"data: [DONE]\n\n")
        await self.answer.write_eof()
        return self.answer

    async def decode(self, number):
        """Sends the content of one choice, a chunk per step."""
        pace = random.Random(f"{self.options.seed}/pace/{self.index}/{number}")
        tokens = [1] + [kept + 1 for kept in self.sequences[number]["accepted"]]
        for step, count in enumerate(tokens):
            if step:
                await asyncio.sleep(self.options.itl * pace.uniform(0.5, 1.5))
            chunk = self.chunk(number, words(count))
            if self.kind == "broken:sent_twice" and step == len(tokens) - 1:
                self.with_payload(chunk, number, "usage" if self.options.engine == "vllm" else "finish")
            self.entry["t_chunks_ns"].append(time.time_ns())
            await self.send(chunk)

    async def send(self, event):
        await self.answer.write(b"data: " + json.dumps(event, separators=(",", ":")).encode() + b"\n\n")


def words(count):
    """A text of so many tokens."""
    return " tok" * count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--engine", choices=list(decode.NAMES), default="vllm")
    parser.add_argument("--log", default="payload-log.jsonl", help="where to write what was sent")
    parser.add_argument("--seed", default="spectap")
    parser.add_argument("--k", type=int, default=5, help="most drafts of a step")
    parser.add_argument("--adaptive", action="store_true", help="draft 1 to k per step")
    parser.add_argument("--detailed", action="store_true", help="vLLM's arrays with one number per step")
    parser.add_argument("--requests", type=int, default=60, help="length of the schedule, which then repeats")
    parser.add_argument("--ttft", type=float, default=0.02, help="seconds before the first token")
    parser.add_argument("--itl", type=float, default=0.004, help="seconds per step")
    parser.add_argument("--hold", type=int, default=0, help="answer this request, counted from 1, after POST /release")
    for kind in ("zero", "nostats", "broken", "contradicting", "cut", "error_event", "refused", "silent"):
        name = kind.replace("_", "-")
        parser.add_argument(f"--{name}", type=int, default=0, help=f"how many requests of a schedule are {name}")
    options = parser.parse_args()
    engine, app = Engine(options), web.Application()
    app.router.add_post("/v1/chat/completions", engine.infer)
    app.router.add_post("/v1/completions", engine.infer)
    app.router.add_get("/v1/models", engine.models)
    app.router.add_post("/release", engine.let_go)
    app.router.add_get("/metrics", engine.metrics)
    asyncio.run(serve(app))


async def serve(app):
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    print(f"listening on {runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    main()
