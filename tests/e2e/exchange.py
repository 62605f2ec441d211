"""Sending one case, directly or through spectap, and comparing what came back."""

import dataclasses
import difflib
import itertools

import client
import wire
from cases import INCLUDE

# vLLM may join the output of two steps in one event when the machine is busy. A different answer is therefore asked
# for again, and the reference is taken twice; every try counts in what spectap must have seen.
TRIES = 4
REFERENCES = 2


class Sent:
    """What was sent through spectap, and what it must say of it."""

    def __init__(self):
        self.expected = {}

    def __len__(self):
        return len(self.expected)

    def holds(self, name):
        return name in self.expected

    def expect(self, name, acceptance, reason, outcome):
        self.expected[name] = (acceptance, reason, outcome)

    def expect_client(self, name, exchanges, *what):
        for number in range(exchanges):
            self.expect(name if exchanges == 1 else f"{name}-{number}", *what)

    def observations(self):
        return dict(self.expected)

    def reasons(self):
        """{(acceptance, reason): count}"""
        counts = {}
        for acceptance, reason, _ in self.expected.values():
            key = (acceptance, reason or "")
            counts[key] = counts.get(key, 0) + 1
        return counts


def id_of(name, number):
    """The request id of one try; vLLM builds its response id from it, so all tries are equally long."""
    return f"{name}-{number}"


def renamed(case, name, **changes):
    return dataclasses.replace(case, name=name, **changes)


def send(port, case, request_id, engine_port=None):
    """Sends a case; where it is to be aborted, vLLM is told so directly once the answer has begun."""

    def abort():
        wire.post(engine_port, "/inference/v1/abort_requests", {"request_ids": [f"chatcmpl-{request_id}"]})

    return wire.post(
        port,
        case.path,
        case.body,
        request_id=request_id,
        stop_after=case.hang_up_after,
        midway=abort if case.abort else None,
    )


def view(case, response, request_id):
    """What of a response must be the same each time."""
    unnamed = dataclasses.replace(response, body=response.body.replace(request_id.encode(), b"REQUEST"))
    if case.hang_up_after:
        return response.status, wire.whole_events(unnamed.body)[:10]
    if case.abort:
        return response.status, wire.whole_events(unnamed.body)[:5], wire.finish(unnamed.body), response.whole
    return wire.comparable(unnamed, case.sequences)


def direct(port, case):
    """The answers that vLLM itself gives."""
    answers = []
    for number in range(REFERENCES):
        request_id = id_of(case.name, number)
        answers.append(view(case, send(port, case, request_id, port), request_id))
    return answers


def reference(port, all_cases, client_actions):
    """All answers of vLLM itself, by name."""
    answers = {case.name: direct(port, case) for case in all_cases}
    for name, (act, *_) in itertools.chain.from_iterable(actions.items() for actions in client_actions):
        connected = client.connect(port)
        answers[name] = [unnamed(act(connected, id_of(name, number)), name) for number in range(REFERENCES)]
    return answers


def unnamed(value, name):
    """An object of the client with the number of the try taken out of the ids."""
    if isinstance(value, dict):
        return {key: unnamed(member, name) for key, member in value.items()}
    if isinstance(value, list):
        return [unnamed(member, name) for member in value]
    if isinstance(value, str):
        for number in range(TRIES):
            value = value.replace(id_of(name, number), "REQUEST")
    return value


def send_and_compare(report, port, engine_port, case, everything, sent=None):
    """Sends a case until it equals one of the reference answers, at most four times."""
    for number in range(TRIES):
        request_id = id_of(case.name, number)
        response = send(port, case, request_id, engine_port)
        if sent is not None:
            sent.expect(request_id, case.acceptance, case.reason, case.outcome)
        found = view(case, response, request_id)
        if found in everything[case.name]:
            report.check(f"{case.name}: same bytes as direct", True)
            return
        report.again(case.name)
    report.check(f"{case.name}: same bytes as direct", False, difference(everything[case.name][0], found))


def act_and_compare(report, port, name, act, everything):
    """The same with the official client; returns how often it was tried."""
    connected = client.connect(port)
    for number in range(TRIES):
        found = unnamed(act(connected, id_of(name, number)), name)
        if found in everything[name]:
            report.check(f"{name}: same objects as direct", True)
            return number + 1
        report.again(name)
    report.check(f"{name}: same objects as direct", False, difference(everything[name][0], found))
    return TRIES


def difference(expected, found):
    def lines(value):
        if isinstance(value, bytes):
            return value.decode(errors="replace").splitlines()
        if isinstance(value, (list, tuple)):
            return [line for member in value for line in lines(member)]
        return [repr(value)]

    return "\n".join(difflib.unified_diff(lines(expected), lines(found), "direct", "through", lineterm="", n=0))


def with_usage(case):
    """The case's body, asking for usage where it is streamed: on a stream the payload comes with it."""
    return {**case.body, "stream_options": INCLUDE} if case.body.get("stream") else case.body


def carries_payload(port, case):
    """Whether vLLM says anything about a case; one that is cut off has no place for it."""
    if case.hang_up_after:
        return False
    asked = dataclasses.replace(case, body=with_usage(case))
    return wire.payload(send(port, asked, id_of(case.name, TRIES), port)) is not None


def payload_sums(port, with_payload):
    """Sends each case directly with usage asked for, and adds up the payloads, named as `counters` names them."""
    values = {}

    def add(key, count):
        if count:
            values[key] = values.get(key, 0) + count

    for case in with_payload:
        said = wire.payload(wire.post(port, case.path, with_usage(case))) or {}
        add("steps", said.get("num_spec_steps"))
        add("drafted", said.get("num_draft_tokens"))
        add("accepted", said.get("num_accepted_draft_tokens"))
        for accepted, steps in enumerate(said.get("acceptance_histogram", [])):
            for position in range(accepted):
                add(f"position {position}", steps)
    return values
