#!/usr/bin/env python3
"""spectap in front of a real vLLM: clients see what they would see without it, and its sums are vLLM's own.

    vllm.py --spectap target/debug/spectap --work .work [--only ngram-summary] [--self-check]

For each kind of drafter and level of numbers a vLLM is started on the CPU, and then

1. every request goes to vLLM directly, for reference;
2. the requests whose response carries numbers go through spectap: same bytes, same objects, and the sums of spectap's
   records equal the movement of vLLM's own counters, down to each position;
3. the requests whose response carries none go through spectap: same bytes, same objects, and spectap tells the right
   reason for each.

`--self-check` needs no spectap: it sends the second and third part directly too, which shows that vLLM answers
alike each time and that the payloads' sums are its counters; without that the comparison would mean nothing.
"""

import argparse
import pathlib
import sys
import time

import cases
import client
import counters
import exchange
import servers
from report import Report

SERVERS = [("ngram", "summary"), ("ngram", "detailed"), ("draft", "summary"), ("draft", "detailed"), ("ngram", "none")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--spectap", type=pathlib.Path, help="the binary to test")
    parser.add_argument("--work", type=pathlib.Path, default=pathlib.Path(".work"), help="folder kept between runs")
    parser.add_argument("--only", action="append", help="DRAFTER-LEVEL of a server; may be repeated")
    parser.add_argument("--self-check", action="store_true", help="no spectap: is vLLM itself repeatable?")
    options = parser.parse_args()
    if not options.self_check and not (options.spectap and options.spectap.is_file()):
        parser.error("--spectap must name a binary (cargo build makes target/debug/spectap), or use --self-check")
    options.work.mkdir(parents=True, exist_ok=True)

    report = Report()
    for drafter, level in SERVERS:
        name = f"{drafter}-{level}"
        if options.only and name not in options.only:
            continue
        begin = time.monotonic()
        with servers.Vllm(options.work / "vllm", drafter, level) as engine:
            report.heading(f"vLLM, drafter {drafter}, level {level} (up after {time.monotonic() - begin:.0f} s)")
            if options.self_check:
                check_alone(report, engine, level)
            else:
                log = options.work / f"spectap-{name}.log"
                with servers.Spectap(options.spectap, engine.port, log) as spectap:
                    check_through(report, engine, spectap, level)
                report.check("spectap ended well on SIGTERM", spectap.code == 0, f"exit code {spectap.code}")
    return report.end()


def wanted(level):
    """The cases of the three parts, and the client's, for a server of this level."""
    if level == "none":
        return [], cases.LEVEL_OFF, [], {}, {}
    return cases.FIRST, cases.WITH_PAYLOAD, cases.WITHOUT_PAYLOAD, client.WITH_PAYLOAD, client.WITHOUT_PAYLOAD


def check_alone(report, engine, level):
    first, with_payload, without_payload, client_with, client_without = wanted(level)
    everything = exchange.reference(engine.port, first + with_payload + without_payload, [client_with, client_without])
    before = counters.settled(engine.port)
    seen = exchange.payload_sums(engine.port, with_payload)
    moved = counters.eventually(lambda: counters.moved(counters.vllm(engine.port), before), seen, 15)
    if level != "none":
        report.table("phase 1, sums", {"vLLM's counters": moved, "payloads": seen})
    for case in first + with_payload + without_payload:
        exchange.send_and_compare(report, engine.port, engine.port, case, everything)
    for group, carries in ((with_payload, True), (without_payload, False)):
        wrong = [case.name for case in group if (exchange.payload_of(engine.port, case) is not None) != carries]
        report.check(f"{len(group)} requests {'carry' if carries else 'do not carry'} a payload", not wrong, str(wrong))
    for name, (act, *_) in {**client_with, **client_without}.items():
        exchange.act_and_compare(report, engine.port, name, act, everything)


def check_through(report, engine, spectap, level):
    first, with_payload, without_payload, client_with, client_without = wanted(level)
    admin = counters.Spectap(spectap.admin_port)
    everything = exchange.reference(engine.port, first + with_payload + without_payload, [client_with, client_without])
    if level != "none":
        with_payload = [exchange.with_acceptance(engine.port, case) for case in with_payload]
    sent = exchange.Sent()

    for case in first:
        exchange.send_and_compare(report, spectap.port, engine.port, case, everything, sent)

    before, spectap_before = counters.settled(engine.port), admin.metrics()
    admin.begin_run("with-payload")
    for case in with_payload:
        exchange.send_and_compare(report, spectap.port, engine.port, case, everything, sent)
    for name, (act, exchanges) in client_with.items():
        tries = exchange.act_and_compare(report, spectap.port, name, act, everything)
        for number in range(tries):
            sent.expect_client(exchange.id_of(name, number), exchanges, "recorded", None, "complete")
    if level != "none":
        check_sums(report, engine, admin, before, spectap_before, sent)
    before = counters.settled(engine.port)
    admin.begin_run("without-payload")
    if level != "none":
        check_coverage(report, admin, "with-payload", {})

    for case in without_payload:
        exchange.send_and_compare(report, spectap.port, engine.port, case, everything, sent)
    for name, (act, reason, outcome) in client_without.items():
        tries = exchange.act_and_compare(report, spectap.port, name, act, everything)
        for number in range(tries):
            sent.expect_client(exchange.id_of(name, number), 1, "absent", reason, outcome)
    if level != "none":
        gap = counters.moved(counters.settled(engine.port), before)
        check_coverage(report, admin, "without-payload", gap)
        check_switch(report, spectap, engine, admin, everything, sent)
    idle = counters.eventually(lambda: counters.running(engine.port), 0, 10)
    report.check("a client that leaves ends its request in vLLM", idle == 0, f"{idle} still running after 10 s")
    check_observations(report, admin, sent, level)


def check_coverage(report, admin, run, gap):
    """Every request through spectap with numbers: all of vLLM's work is in the records. Without: the gap is theirs."""
    coverage = admin.coverage(run)
    missing = {}
    for part in ("steps", "drafted", "accepted"):
        share = coverage.get(part) or {"seen": 0, "moved": 0}
        missing[part] = share["moved"] - share["seen"]
    wanted = {part: gap.get(part, 0) for part in missing}
    report.check(f"coverage of {run}", missing == wanted, f"missing {missing}, should be {wanted}: {coverage}")


def check_switch(report, spectap, engine, admin, everything, sent):
    """With injection off nothing is added, and that is the reason given."""
    answer = admin.inject(False)
    report.check("injection can be switched off", answer == {"enabled": False}, f"the answer was {answer}")
    case = next(case for case in cases.WITH_PAYLOAD if case.name == "chat-stream")
    off = exchange.renamed(case, "chat-stream-inject-off", acceptance="absent", reason="inject_off")
    everything[off.name] = exchange.direct(engine.port, off)
    exchange.send_and_compare(report, spectap.port, engine.port, off, everything, sent)
    admin.inject(True)


def check_sums(report, engine, admin, before, spectap_before, sent):
    """vLLM publishes its counters a little late, so both sides get 15 s to agree."""
    ours = lambda: counters.moved(admin.metrics(), spectap_before)  # noqa: E731
    theirs = lambda: counters.moved(counters.vllm(engine.port), before)  # noqa: E731
    counters.eventually(lambda: ours() == theirs() != {}, True, 15)
    observations = [item for name, item in admin.observations().items() if sent.holds(name)]
    report.table(
        f"phase 1, {len(sent) - len(cases.FIRST)} exchanges, sums",
        {
            "vLLM's counters": theirs(),
            "spectap /metrics": ours(),
            "spectap /api/v1/summary": {key: value for key, value in admin.sequences().items() if value},
            "spectap /api/v1/requests": counters.of_records(observations),
        },
    )


def check_observations(report, admin, sent, level):
    """One observation per exchange, with the acceptance, reason and outcome that it must have."""
    expected = sent.observations()
    found = counters.eventually(
        lambda: {
            name: (item["acceptance"], item["reason"], item["outcome"])
            for name, item in admin.observations().items()
        },
        expected,
        10,
    )
    wrong = [
        f"{name}: expected {expected.get(name)}, found {found.get(name)}"
        for name in sorted(expected.keys() | found.keys())
        if expected.get(name) != found.get(name)
    ]
    report.check(f"{len(expected)} exchanges have their acceptance, reason and outcome", not wrong, "\n".join(wrong))
    report.table(
        "exchanges by acceptance and reason",
        {"expected": sent.reasons(), "spectap /metrics": admin.reasons()},
    )
    n, reasons = admin.summary()["n"], sent.reasons()
    counted = {kind: sum(count for (what, _), count in reasons.items() if what == kind) for kind in n}
    counted["exchanges"] = len(expected)
    report.table("summary, n", {"expected": counted, "spectap": n})
    records = [
        (name, record)
        for name, item in admin.observations().items()
        for record in item["spec_decode_acceptance"]
        if record["num_spec_steps"]
    ]
    provenance = {"summary": "histogram", "detailed": "per_step"}.get(level)
    wrong = [
        f"{name}: {record['provenance']}"
        for name, record in records
        if record["provenance"] != provenance
        or (level == "detailed" and len(record["per_step_accepted"]) != record["num_spec_steps"])
    ]
    report.check(f"{len(records)} records say {provenance or 'nothing'}", not wrong, "\n".join(wrong))


if __name__ == "__main__":
    sys.exit(main())
