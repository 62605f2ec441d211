"""The official `openai` client, as an application uses it; what it hands to the application must not change."""

from concurrent.futures import ThreadPoolExecutor

import openai

from cases import MESSAGES, MODEL, PROMPT, TOOLS

GREEDY = {"model": MODEL, "max_tokens": 48, "temperature": 0}


def connect(port):
    return openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0, timeout=120)


def seen(result):
    """What the application saw, without time and random ids: one object, or the list of a stream's chunks."""
    if isinstance(result, openai.Stream):
        return [seen(chunk) for chunk in result]
    value = result.model_dump()
    value.pop("created", None)
    for choice in value.get("choices", []):
        for call in (choice.get("message") or choice.get("delta") or {}).get("tool_calls") or []:
            call.pop("id", None)
    return value


def chat(client, name, **members):
    return seen(
        client.chat.completions.create(
            messages=MESSAGES, extra_headers={"X-Request-Id": name}, **{**GREEDY, **members}
        )
    )


def completion(client, name, **members):
    return seen(
        client.completions.create(prompt=PROMPT, extra_headers={"X-Request-Id": name}, **{**GREEDY, **members})
    )


def concurrent(client, name):
    """Eight conversations at once, half of them streamed, one in four asking for usage itself."""

    def one(number):
        members = {"stream": True} if number % 2 else {}
        if number % 4 == 3:
            members["stream_options"] = {"include_usage": True}
        question = [{"role": "user", "content": f"Count the steps of number {number}, and divide."}]
        answer = client.chat.completions.create(
            messages=question,
            extra_headers={"X-Request-Id": f"{name}-{number}"},
            **{**GREEDY, "max_tokens": 40 + 10 * number},
            **members,
        )
        return seen(answer)

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(one, range(8)))


def cancelled(client, name):
    """Leaves in the middle of a stream."""
    stream = client.chat.completions.create(
        messages=MESSAGES,
        stream=True,
        extra_headers={"X-Request-Id": name},
        extra_body={"ignore_eos": True},
        **{**GREEDY, "max_tokens": 1900},
    )
    chunks = []
    for chunk in stream:
        chunks.append(seen(chunk))
        if len(chunks) == 5:
            break
    stream.close()
    return chunks


INCLUDE = {"stream": True, "stream_options": {"include_usage": True}}

# name -> (what to do, the exchanges that it makes: how many, and what becomes of each)
WITH_PAYLOAD = {
    "client-chat": (lambda c, name: chat(c, name), 1),
    "client-chat-stream": (lambda c, name: chat(c, name, stream=True), 1),
    "client-chat-stream-usage": (lambda c, name: chat(c, name, **INCLUDE), 1),
    "client-completions": (lambda c, name: completion(c, name), 1),
    "client-completions-stream": (lambda c, name: completion(c, name, stream=True), 1),
    "client-completions-stream-usage": (lambda c, name: completion(c, name, **INCLUDE), 1),
    "client-tools": (lambda c, name: chat(c, name, tools=TOOLS, tool_choice="required", max_tokens=80), 1),
    "client-tools-stream": (
        lambda c, name: chat(c, name, tools=TOOLS, tool_choice="required", max_tokens=80, stream=True),
        1,
    ),
    "client-tools-auto-stream-usage": (lambda c, name: chat(c, name, tools=TOOLS, max_tokens=80, **INCLUDE), 1),
    "client-concurrent": (concurrent, 8),
}

# name -> (what to do, reason, outcome)
WITHOUT_PAYLOAD = {
    "client-n2": (lambda c, name: chat(c, name, n=2, temperature=0.8, extra_body={"ignore_eos": True}), "n_gt_1", "complete"),
    "client-stop-string": (lambda c, name: chat(c, name, stop=" bonus", max_tokens=200), "stop_string", "complete"),
    "client-stop-string-stream": (
        lambda c, name: chat(c, name, stop=[" bonus"], max_tokens=200, stream=True),
        "stop_string",
        "complete",
    ),
    "client-cancelled": (cancelled, "cancelled", "cancelled"),
}
