"""Numbers of both sides: vLLM's own counters, and what spectap says on its admin port."""

import json
import time
import urllib.request

from prometheus_client.parser import text_string_to_metric_families

NAMES = {
    "steps": "spec_decode_num_drafts_total",
    "drafted": "spec_decode_num_draft_tokens_total",
    "accepted": "spec_decode_num_accepted_tokens_total",
}
PER_POSITION = "spec_decode_num_accepted_tokens_per_pos_total"


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def get_json(url):
    return json.loads(get(url))


def speculation(base, prefix):
    """Steps, drafted, accepted and accepted per position of a `/metrics`, summed over all other labels."""
    wanted = {prefix + name: key for key, name in NAMES.items()}
    values = dict.fromkeys(NAMES, 0)
    for family in text_string_to_metric_families(get(f"{base}/metrics")):
        for sample in family.samples:
            if sample.name in wanted:
                values[wanted[sample.name]] += int(sample.value)
            elif sample.name == prefix + PER_POSITION and sample.value:
                key = f"position {sample.labels['position']}"
                values[key] = values.get(key, 0) + int(sample.value)
    return values


def vllm(port):
    return speculation(f"http://127.0.0.1:{port}", "vllm:")


def running(port):
    """Requests that vLLM is working on."""
    families = text_string_to_metric_families(get(f"http://127.0.0.1:{port}/metrics"))
    names = ("vllm:num_requests_running", "vllm:num_requests_waiting")
    return sum(int(s.value) for family in families for s in family.samples if s.name in names)


def moved(after, before):
    """What was added between two readings."""
    return {key: after[key] - before.get(key, 0) for key in sorted(after) if after[key] != before.get(key, 0)}


def settled(port):
    """vLLM's counters once nothing runs and they have stood still for a second (it publishes them a little late)."""
    deadline = time.monotonic() + 30
    values, since = vllm(port), time.monotonic()
    while time.monotonic() < deadline:
        if running(port):
            since = time.monotonic()
        elif (now := vllm(port)) != values:
            values, since = now, time.monotonic()
        elif time.monotonic() - since > 1:
            return values
        time.sleep(0.05)
    raise TimeoutError("vLLM's counters did not come to rest within 30 s")


def eventually(read, expected, seconds):
    """Reads until the value is the expected one or the time is over; returns the last value."""
    deadline = time.monotonic() + seconds
    while True:
        value = read()
        if value == expected or time.monotonic() > deadline:
            return value
        time.sleep(0.05)


class Spectap:
    """The admin port of a spectap."""

    def __init__(self, port):
        self.base = f"http://127.0.0.1:{port}"

    def metrics(self):
        return speculation(self.base, "spectap_")

    def reasons(self):
        """`spectap_spec_decode_requests_total` as {(acceptance, reason): count}."""
        counts = {}
        for family in text_string_to_metric_families(get(f"{self.base}/metrics")):
            for sample in family.samples:
                if sample.name == "spectap_spec_decode_requests_total":
                    key = (sample.labels["acceptance"], sample.labels["reason"])
                    counts[key] = counts.get(key, 0) + int(sample.value)
        return counts

    def summary(self):
        return get_json(f"{self.base}/api/v1/summary")

    def sequences(self):
        """The sums of the summary's view of all sequences, named as `speculation` names them."""
        view = self.summary()["sequences"]
        metrics, histogram = view["metrics"], view["pooled_spec_decode_acceptance_histogram"]
        values = {
            "steps": total(metrics, "total_spec_decode_steps"),
            "drafted": total(metrics, "total_draft_tokens"),
            "accepted": total(metrics, "total_accepted_draft_tokens"),
        }
        for accepted, steps in (histogram or {}).items():
            for position in range(int(accepted)):
                key = f"position {position}"
                values[key] = values.get(key, 0) + steps
        return values

    def observations(self):
        """The recent observations by the request id that the client gave them."""
        found, after = {}, ""
        while True:
            page = get_json(f"{self.base}/api/v1/requests?limit=1000{after}")
            found.update({item["x_request_id"]: item for item in page["requests"] if item["x_request_id"]})
            if not page["next"]:
                return found
            after = f"&after={page['next']}"

    def coverage(self, run):
        """How much of vLLM's work the records of a run hold, once spectap says that it is exact."""
        read = lambda: get_json(f"{self.base}/api/v1/summary?run={run}")["coverage"] or {}  # noqa: E731
        eventually(lambda: read().get("settled"), True, 15)
        return read()

    def begin_run(self, name):
        return self.post("/api/v1/runs", {"name": name})

    def inject(self, enabled):
        return self.post("/api/v1/inject", {"enabled": enabled})

    def post(self, path, body):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self.base}{path}", json.dumps(body).encode(), headers, method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)


def total(metrics, name):
    return int(metrics[name]["avg"]) if name in metrics else 0


def of_records(observations):
    """The sums of observations' records, named as `speculation` names them."""
    values = dict.fromkeys(NAMES, 0)
    for observation in observations:
        for record in observation["spec_decode_acceptance"]:
            values["steps"] += record["num_spec_steps"]
            values["drafted"] += record["num_draft_tokens"]
            values["accepted"] += record["num_accepted_draft_tokens"]
            for accepted, steps in record["acceptance_histogram"].items():
                for position in range(int(accepted)):
                    key = f"position {position}"
                    values[key] = values.get(key, 0) + steps
    return {key: value for key, value in values.items() if value}
