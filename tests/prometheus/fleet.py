"""Five taps of different load and one before a faulty engine, and the Prometheus that scrapes them."""

import itertools
import signal
import time

from promql import ALERTS, RULES, rule_file, since
from servers import Prometheus, Tap, engine, until
from traffic import FaultyEngine, chat, mixed, send, send_all

# Requests of each tap in each half of the traffic, and what its engine accepts for the first model.
LOADS = [8, 16, 30, 50, 80]
ACCEPTANCE = ["0.8,0.7,0.6,0.5", "0.9,0.9,0.8,0.8", "0.5,0.4,0.3,0.2", "0.7,0.6,0.5,0.4", "0.95,0.9,0.85,0.8"]
MODELS = ["chat-8b", "org/code.32b"]
OF_CODE = "0.95,0.92,0.9,0.88"
FAULTS = ["identity_sum", "mean_or_rate", "not_json", "compressed", "closed"]


class Fleet:
    def __init__(self, stack, binary, folder):
        self.taps = []
        for number, acceptance in enumerate(ACCEPTANCE):
            models = [f"{MODELS[0]}={acceptance}", f"{MODELS[1]}={OF_CODE}"]
            flags = [f"--seed={number}", "--step-time=1", "--prefill-time=2"]
            behind = stack.enter_context(engine(binary, folder, f"tap-{number}", models, flags))
            self.taps.append(stack.enter_context(Tap(binary, folder, f"tap-{number}", behind.address)))
        self.faulty = stack.enter_context(Tap(binary, folder, "faulty", stack.enter_context(FaultyEngine()).address))
        targets = [(tap.admin, {"namespace": "inference", "pod": tap.name}) for tap in self.taps]
        targets.append((self.faulty.admin, {"namespace": "trial", "pod": "faulty"}))
        self.rules, alerts = folder / "rules.yml", folder / "alerts.yml"
        rule_file(RULES, self.rules, lambda expression: expression)
        rule_file(ALERTS, alerts, lambda expression: expression)
        self.prometheus = stack.enter_context(Prometheus(folder, {"spectap": targets}, [self.rules, alerts]))
        until("every tap is scraped", lambda: self.prometheus.value("sum(up)") == len(targets))

    def all(self):
        return [*self.taps, self.faulty]

    def tap(self, pod):
        return next(tap for tap in self.all() if tap.name == pod)

    def send(self, half):
        """One half of the traffic, until Prometheus has seen its end; gives that time."""
        each = []
        for number, (tap, load) in enumerate(zip(self.taps, LOADS)):
            each.append([(tap.data, *one) for one in mixed(MODELS, load, seed=f"{half} {number}")])
        # Taken by turns, so that all taps are busy at the same time.
        statuses = send_all(one for turn in itertools.zip_longest(*each) for one in turn if one)
        assert set(statuses) == {200}, statuses
        for _ in range(4):
            self.send_faults()
        until("Prometheus has seen all of it", self.is_scraped)
        return time.time()

    def send_faults(self):
        """One request for each thing that goes wrong."""
        for fault in FAULTS:
            send(self.faulty.data, chat(fault, 8, stream=fault == "compressed"))
        # A member that decides stands there twice: nothing is added.
        send(self.faulty.data, '{"model": "mean_or_rate", "stream": true, "stream": true}')

    def is_scraped(self):
        """Whether Prometheus and the records files have of every tap what the tap itself has."""
        for tap in self.all():
            n = tap.json("/api/v1/summary")["n"]["exchanges"]
            seen = self.prometheus.value(f'sum(spectap_spec_decode_requests_total{{pod="{tap.name}"}})')
            if not n or seen != n or len(tap.observations()) < n:
                return False
        return self.prometheus.value("sum(spectap_requests_in_flight)") == 0

    def count_since(self, moment):
        """Has the rules count what came since a moment, exactly."""
        rule_file(RULES, self.rules, lambda expression: since(expression, moment))
        self.prometheus.process.send_signal(signal.SIGHUP)
