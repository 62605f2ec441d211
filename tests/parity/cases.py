"""The runs: what the engine reports, how AIPerf asks for it, and what may differ by design."""

import dataclasses

CHAT = ["--endpoint-type=chat", "--streaming", "--concurrency=4"]
MIXED = ["--zero=5", "--nostats=4", "--broken=13"]


@dataclasses.dataclass
class Case:
    """One run of AIPerf through spectap."""

    name: str
    says: str
    engine: list
    aiperf: list = dataclasses.field(default_factory=lambda: CHAT)
    requests: int = 60
    warmup: int = 0
    run: str = ""
    """Name of a run that begins between warm-up and profiling, so that spectap can leave the warm-up out."""
    scrape: bool = False
    """Whether AIPerf also reads the engine's own counters, through spectap."""
    usage_withheld: bool = False
    """AIPerf tells the engine to send no usage, so it sees no numbers itself."""
    several: bool = False
    """Several sequences a request: nothing for AIPerf, a record each for spectap."""
    contradicting: bool = False
    """Some payloads' mean and rate contradict their counts: AIPerf believes them, spectap the counts."""


CASES = [
    Case("vllm-summary", "vLLM, summary", [*MIXED], scrape=True),
    Case(
        "vllm-detailed",
        "vLLM, detailed: per-step arrays, 1 to 12 drafts a step, so that the line below the table ends in >=8",
        [*MIXED, "--detailed", "--adaptive", "--k=12"],
    ),
    Case("trtllm", "TensorRT-LLM with a fixed k", ["--engine=trtllm", *MIXED]),
    Case("trtllm-adaptive", "TensorRT-LLM without k", ["--engine=trtllm", "--adaptive", *MIXED]),
    Case("zero-only", "vLLM, nothing but zero-step requests", ["--zero=12", "--requests=12"], requests=12),
    Case("none", "vLLM, no numbers at all", ["--nostats=12", "--requests=12"], requests=12),
    Case(
        "completions",
        "vLLM, completions, not streamed",
        [*MIXED],
        ["--endpoint-type=completions", "--concurrency=4"],
    ),
    Case(
        "failing",
        "TensorRT-LLM; 16 requests are refused, carry an error event, are cut after the numbers, or have no text",
        ["--engine=trtllm", *MIXED, "--refused=4", "--error-event=4", "--cut=4", "--silent=4"],
    ),
    Case("warm-up", "vLLM, 12 warm-up requests before 40", [*MIXED], requests=40, warmup=12),
    Case(
        "warm-up-by-run",
        "vLLM, 12 warm-up requests before 40, and a run of its own for the 40",
        [*MIXED, "--hold=12"],
        requests=40,
        warmup=12,
        run="profiling",
    ),
    Case(
        "usage-withheld",
        "vLLM, AIPerf sends include_usage false",
        # Without the last two ways to break a payload: one of them puts it where a client needs no usage to see it.
        ["--zero=5", "--nostats=4", "--broken=11"],
        [*CHAT, '--extra-inputs={"stream_options":{"include_usage":false}}'],
        usage_withheld=True,
    ),
    Case(
        "several",
        "TensorRT-LLM, two sequences a request",
        ["--engine=trtllm", "--nostats=4"],
        [*CHAT, "--extra-inputs=n:2"],
        requests=24,
        several=True,
    ),
    Case(
        "contradicting",
        "vLLM, payloads whose mean and rate contradict their own counts",
        [*MIXED, "--contradicting=7"],
        contradicting=True,
    ),
]
