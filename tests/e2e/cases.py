"""The requests of the end-to-end check, as bodies for a plain socket.

Phase 1 holds only requests whose response carries speculation numbers, phase 2 only such that carry none. A stop
*string*, several sequences, several prompts, beam search, an abort and a client that leaves are the ways in which
vLLM says nothing.
"""

from dataclasses import dataclass

MODEL = "tiny-model"
CHAT, COMPLETIONS, GENERATE = "/v1/chat/completions", "/v1/completions", "/inference/v1/generate"
PROMPT = "Count the steps, count the drafts, count what was kept, and divide."
MESSAGES = [{"role": "user", "content": "Count the steps, count the drafts, and divide."}]
INCLUDE = {"include_usage": True}
SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Paris", "Oslo"]},
        "unit": {"type": "string", "enum": ["c", "f"]},
    },
    "required": ["city", "unit"],
    "additionalProperties": False,
}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "Weather of a city", "parameters": SCHEMA},
    }
]


@dataclass
class Case:
    """One request and what spectap must make of it."""

    name: str
    path: str
    body: dict
    acceptance: str = "recorded"
    reason: str | None = None
    outcome: str = "complete"
    sequences: int = 1
    hang_up_after: int | None = None
    """The client leaves after so many bytes."""
    abort: bool = False
    """The server is told to abort the request once it runs."""
    same_text: bool = True
    """Whether vLLM gives the same text each time."""


def chat(**members):
    return {"model": MODEL, "messages": MESSAGES, "max_tokens": 48, "temperature": 0, **members}


def completion(**members):
    return {"model": MODEL, "prompt": PROMPT, "max_tokens": 48, "temperature": 0, **members}


def generate(sampling=None, **members):
    parameters = {"max_tokens": 48, "temperature": 0, **(sampling or {})}
    return {"model": MODEL, "token_ids": [20, 30, 40, 50, 20, 30, 40], "sampling_params": parameters, **members}


# vLLM refuses n = 2 at temperature 0, and its sampling of drafts does not follow a seed, so only one token from a seed
# is the same each time.
TWICE = {"n": 2, "temperature": 0.8, "seed": 3, "max_tokens": 12, "ignore_eos": True}
TWICE_ONE_TOKEN = {**TWICE, "max_tokens": 1}
NAMED_TOOL = {"tools": TOOLS, "tool_choice": {"type": "function", "function": {"name": "get_weather"}}}
JSON_SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}}}

# Sent first of all, while spectap can't know the server's fingerprint yet.
FIRST = [
    Case("first-chat-n2-stream", CHAT, chat(stream=True, **TWICE), "absent", "n_gt_1", sequences=2, same_text=False),
]

WITH_PAYLOAD = [
    Case("chat", CHAT, chat()),
    Case("chat-long", CHAT, chat(max_tokens=200)),
    Case("chat-stream", CHAT, chat(stream=True)),
    Case("chat-stream-long", CHAT, chat(stream=True, max_tokens=200)),
    Case("chat-stream-options-null", CHAT, chat(stream=True, stream_options=None)),
    Case("chat-stream-options-empty", CHAT, chat(stream=True, stream_options={})),
    Case("chat-stream-usage-false", CHAT, chat(stream=True, stream_options={"include_usage": False})),
    Case("chat-stream-usage-null", CHAT, chat(stream=True, stream_options={"include_usage": None})),
    Case("chat-stream-continuous-only", CHAT, chat(stream=True, stream_options={"continuous_usage_stats": True})),
    Case("chat-stream-usage", CHAT, chat(stream=True, stream_options=INCLUDE)),
    Case(
        "chat-stream-usage-continuous",
        CHAT,
        chat(stream=True, stream_options={**INCLUDE, "continuous_usage_stats": True}),
    ),
    Case("chat-stream-very-long", CHAT, chat(stream=True, max_tokens=1500, ignore_eos=True)),
    Case("chat-stream-sampled", CHAT, chat(stream=True, temperature=0.9, max_tokens=120, ignore_eos=True), same_text=False),
    Case("chat-max1", CHAT, chat(max_tokens=1)),
    Case("chat-stream-max1", CHAT, chat(stream=True, max_tokens=1)),
    Case("chat-stream-logprobs", CHAT, chat(stream=True, logprobs=True, top_logprobs=2, max_tokens=12)),
    Case("chat-stream-token-ids", CHAT, chat(stream=True, return_token_ids=True)),
    Case("chat-tool-named", CHAT, chat(max_tokens=80, **NAMED_TOOL)),
    Case("chat-stream-tool-named", CHAT, chat(max_tokens=80, stream=True, **NAMED_TOOL)),
    Case("chat-stream-tool-required", CHAT, chat(max_tokens=80, stream=True, tools=TOOLS, tool_choice="required")),
    Case("chat-stream-json-schema", CHAT, chat(max_tokens=80, stream=True, **JSON_SCHEMA)),
    Case("completions", COMPLETIONS, completion()),
    Case("completions-one-element-list", COMPLETIONS, completion(prompt=[PROMPT])),
    Case("completions-stream", COMPLETIONS, completion(stream=True)),
    Case("completions-stream-usage-false", COMPLETIONS, completion(stream=True, stream_options={"include_usage": False})),
    Case("completions-stream-usage", COMPLETIONS, completion(stream=True, stream_options=INCLUDE)),
    Case("completions-stream-echo", COMPLETIONS, completion(stream=True, echo=True, max_tokens=8)),
    Case("generate", GENERATE, generate()),
    Case("generate-stream", GENERATE, generate(stream=True)),
    Case("generate-stream-usage", GENERATE, generate(stream=True, stream_options=INCLUDE)),
]

WITHOUT_PAYLOAD = [
    Case("chat-n2-one-stream", CHAT, chat(stream=True, **TWICE_ONE_TOKEN), "absent", "n_gt_1", sequences=2),
    Case(
        "completions-n2-one-stream",
        COMPLETIONS,
        completion(stream=True, **TWICE_ONE_TOKEN),
        "absent",
        "n_gt_1",
        sequences=2,
    ),
    Case(
        "chat-n2-one-stream-usage",
        CHAT,
        chat(stream=True, stream_options=INCLUDE, **TWICE_ONE_TOKEN),
        "absent",
        "n_gt_1",
        sequences=2,
    ),
    Case("chat-n2", CHAT, chat(**TWICE), "absent", "n_gt_1", sequences=2, same_text=False),
    Case("chat-n2-stream", CHAT, chat(stream=True, **TWICE), "absent", "n_gt_1", sequences=2, same_text=False),
    Case(
        "chat-n2-stream-usage",
        CHAT,
        chat(stream=True, stream_options=INCLUDE, **TWICE),
        "absent",
        "n_gt_1",
        sequences=2,
        same_text=False,
    ),
    Case("completions-n2-stream", COMPLETIONS, completion(stream=True, **TWICE), "absent", "n_gt_1", sequences=2, same_text=False),
    Case("generate-n2", GENERATE, generate(TWICE), "absent", "n_gt_1", sequences=2, same_text=False),
    Case(
        "completions-two-prompts",
        COMPLETIONS,
        completion(prompt=[PROMPT, "A draft token"]),
        "absent",
        "multi_prompt",
        sequences=2,
    ),
    Case(
        "completions-two-prompts-stream",
        COMPLETIONS,
        completion(prompt=[PROMPT, "A draft token"], stream=True),
        "absent",
        "multi_prompt",
        sequences=2,
    ),
    Case("chat-stop-string", CHAT, chat(max_tokens=200, stop=[" bonus"]), "absent", "stop_string"),
    Case("chat-stop-string-stream", CHAT, chat(max_tokens=200, stop=" bonus", stream=True), "absent", "stop_string"),
    Case(
        "chat-stop-string-stream-usage",
        CHAT,
        chat(max_tokens=200, stop=[" bonus"], stream=True, stream_options=INCLUDE),
        "absent",
        "stop_string",
    ),
    Case("completions-stop-string", COMPLETIONS, completion(max_tokens=200, stop=[" record"]), "absent", "stop_string"),
    Case("chat-beam-search", CHAT, chat(use_beam_search=True, max_tokens=8), "absent", "beam_search"),
    Case("chat-beam-search-stream", CHAT, chat(use_beam_search=True, max_tokens=8, stream=True), "absent", "beam_search"),
    Case(
        "chat-aborted-stream",
        CHAT,
        chat(stream=True, max_tokens=1900, ignore_eos=True),
        "absent",
        "aborted",
        abort=True,
    ),
    Case(
        "chat-cancelled-stream",
        CHAT,
        chat(stream=True, max_tokens=1900, ignore_eos=True),
        "absent",
        "cancelled",
        outcome="cancelled",
        hang_up_after=6000,
    ),
]

# A server that keeps no numbers per request.
LEVEL_OFF = [
    Case("off-chat", CHAT, chat(), "absent", "level_off"),
    Case("off-chat-stream", CHAT, chat(stream=True), "absent", "level_off"),
    Case("off-chat-stream-usage", CHAT, chat(stream=True, stream_options=INCLUDE), "absent", "level_off"),
    Case("off-completions-stream", COMPLETIONS, completion(stream=True), "absent", "level_off"),
]
