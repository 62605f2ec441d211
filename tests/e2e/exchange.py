"""Sending one case, directly or through spectap, and comparing what came back."""

import dataclasses
import difflib
import itertools

import client
import joined
import wire
from cases import INCLUDE

# vLLM may join the output of several steps in one event when the machine is busy. A different answer is therefore
# asked for again, and the reference is taken twice; every try counts in what spectap must have seen. Where no try is
# equal byte by byte, the streams must be equal with the steps joined, and that is said.
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
        """{(acceptance, reason): count}; the reason is `none` where none is needed, as in Prometheus."""
        counts = {}
        for acceptance, reason, _ in self.expected.values():
            key = (acceptance, reason or "none")
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


@dataclasses.dataclass
class Answer:
    """What of an answer must be the same each time."""

    exact: object
    """All of it."""
    loose: object = None
    """What must be the same where vLLM did not do all alike; None where there is no such thing."""
    aside: str = ""
    """What the loose view leaves aside."""


def view(case, response, request_id):
    response = dataclasses.replace(response, body=response.body.replace(request_id.encode(), b"REQUEST"))
    if case.hang_up_after:
        # Where it was cut is chance.
        return Answer((wire.head(response), wire.whole_events(response.body)[0]))
    if case.abort:
        return Answer((wire.head(response), wire.finish(response.body), response.whole))
    exact = wire.comparable(response, case.sequences)
    others, (skeletons, contents) = joined.of_body(wire.masked(response.body))
    loose = (wire.head(response), response.whole, others, skeletons)
    if not case.same_text:
        # A reply that is not streamed has its length in its head.
        return Answer(exact, (response.status, others, joined.without_texts(skeletons)), "but for the text")
    return Answer(exact, (*loose, contents), "with steps joined")


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
        answers[name] = [client_view(act, connected, name, number) for number in range(REFERENCES)]
    return answers


def client_view(act, connected, name, number):
    """What the official client handed to the application."""
    seen = unnamed(act(connected, id_of(name, number)), name)
    if name == "client-cancelled":
        # It leaves after five chunks, and how much text those hold is chance.
        return Answer(seen[0])
    several = seen if name == "client-concurrent" else [seen]
    views = [joined.of_chunks(one if isinstance(one, list) else [one]) for one in several]
    if name == "client-n2":
        return Answer(seen, [skeletons for skeletons, _ in views], "but for the text")
    return Answer(seen, views, "with steps joined")


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

    def attempt(number):
        request_id = id_of(case.name, number)
        response = send(port, case, request_id, engine_port)
        if sent is not None:
            sent.expect(request_id, case.acceptance, case.reason, case.outcome)
        return view(case, response, request_id)

    compare(report, f"{case.name}: same bytes as direct", attempt, everything[case.name])


def act_and_compare(report, port, name, act, everything):
    """The same with the official client; returns how often it was tried."""
    connected = client.connect(port)
    return compare(
        report,
        f"{name}: same objects as direct",
        lambda number: client_view(act, connected, name, number),
        everything[name],
    )


def compare(report, what, attempt, answers):
    """Tries until an answer is as it should be; returns how often."""
    found = None
    for number in range(TRIES):
        found = attempt(number)
        if found.exact in [answer.exact for answer in answers]:
            report.check(what, True)
            return number + 1
        if found.loose is None:
            break
    if found.loose is not None and found.loose in [answer.loose for answer in answers]:
        report.check(f"{what}, {found.aside}", True)
        report.loose(what)
    else:
        report.check(what, False, difference(answers[0], found))
    return number + 1


def difference(expected, found):
    def lines(value):
        if isinstance(value, bytes):
            return value.decode(errors="replace").splitlines()
        if isinstance(value, dict):
            return [line for item in value.items() for line in lines(item)]
        if isinstance(value, (list, tuple)):
            return [line for member in value for line in lines(member)]
        return [repr(value)]

    if expected.loose is not None and found.loose is not None:
        expected, found = expected.loose, found.loose
    else:
        expected, found = expected.exact, found.exact
    return "\n".join(difflib.unified_diff(lines(expected), lines(found), "direct", "through", lineterm="", n=0))


def with_usage(case):
    """The case's body, asking for usage where it is streamed: on a stream the payload comes with it."""
    return {**case.body, "stream_options": INCLUDE} if case.body.get("stream") else case.body


def payload_of(port, case):
    """What vLLM says about a case when asked for usage; one that is cut off has no place for it."""
    if case.hang_up_after:
        return None
    asked = dataclasses.replace(case, body=with_usage(case))
    return wire.payload(send(port, asked, id_of(case.name, TRIES), port))


def with_acceptance(port, case):
    """The case with what its own payload says: whether a drafter finds anything in a short text depends on its kind."""
    steps = payload_of(port, case)["num_spec_steps"]
    return dataclasses.replace(case, acceptance="recorded" if steps else "zero_step")


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
