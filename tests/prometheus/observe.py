"""A fleet under traffic in a real Prometheus: scrapes, rules, exemplars and the dashboard's queries, all by value.

    observe.py --spectap BINARY --work FOLDER
"""

import argparse
import contextlib
import pathlib
import subprocess
import time

import agreement
import boards
import exemplars
from fleet import MODELS, Fleet
from servers import until


def metrics_are_clean(fleet):
    """promtool has nothing to say about what each tap writes."""
    for tap in fleet.all():
        text = tap.get("/metrics", accept="text/plain")
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, capture_output=True)
        assert checked.returncode == 0, f"{tap.name}: {checked.stdout}{checked.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spectap", required=True)
    parser.add_argument("--work", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:
        begun = time.time()
        fleet = Fleet(stack, arguments.spectap, arguments.work)
        half = fleet.send("first")
        before = {tap.name: len(tap.observations()) for tap in fleet.all()}
        fleet.count_since(half)
        end = fleet.send("second")
        later = {tap.name: tap.observations()[before[tap.name]:] for tap in fleet.all()}
        observations = [one for tap in fleet.taps for one in later[tap.name]]

        metrics_are_clean(fleet)
        print("scrapes beside JSON:", agreement.scrapes_with_json(fleet), "figures")
        steps = sum(record["num_spec_steps"] for one in observations for record in one["spec_decode_acceptance"])
        until(
            "the rules have counted all of it",
            lambda: fleet.prometheus.value('sum(model:spectap_steps:rate5m{namespace="inference"})') == steps,
        )
        counted = time.time()
        until("the rules that read those have been evaluated since", lambda: agreement.evaluated_since(fleet, counted))
        print("rules beside records:", agreement.rules_with_records(fleet, observations), "figures")
        found = exemplars.lead_to_observations(fleet, begun, time.time())
        assert found > 10, f"only {found} exemplars"
        print("exemplars:", found)

        fleet_alone = {"namespace": "inference"}
        one_tap = {"namespace": "inference", "pod": "tap-4", "model": [MODELS[1]], "tag": ["math", "code"]}
        print("dashboard beside records:", boards.figures_with_records(fleet, half, observations, fleet_alone), "figures")
        chosen = [one for one in later["tap-4"] if one["model"] == MODELS[1] and one["tag"]]
        boards.figures_with_records(fleet, half, chosen, one_tap)
        print("queries with data:", boards.give_data(fleet, begun, end, {}))
        offered = boards.variables_offer_values(fleet, begun, end)
        assert offered["model"] == ["chat-8b", "faulty", "not_json", "org/code.32b"] and offered["tag"] == ["code", "math"], offered
        assert offered["namespace"] == ["inference", "trial"] and len(offered["pod"]) == 6, offered
        assert "vllm" in offered["engine"], offered
        waiting = agreement.rules_are_healthy(fleet)
        # Five taps share an engine here, so that each holds a part of its work only.
        waiting -= {("SpectapCoverageLow", "inference")}
        assert all(namespace == "trial" for _, namespace in waiting), f"alerts on a healthy fleet: {waiting}"


if __name__ == "__main__":
    main()
