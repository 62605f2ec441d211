"""The exemplars that Prometheus keeps lead to single exchanges of the tap that they came from."""

import json
import urllib.error


def lead_to_observations(fleet, start, end):
    """Gives how many there are; each names an observation of its tap, and has that one's length."""
    found = fleet.prometheus.ask(
        "/api/v1/query_exemplars",
        query="spectap_spec_decode_acceptance_length_bucket",
        start=start,
        end=end,
    )
    seen = set()
    for series in found:
        tap = fleet.tap(series["seriesLabels"]["pod"])
        for exemplar in series["exemplars"]:
            identity = exemplar["labels"]["observation_id"]
            try:
                observation = tap.json(f"/api/v1/requests/{identity}")
            except urllib.error.HTTPError as error:
                raise AssertionError(f"{tap.name} knows no {identity}: {error}") from None
            lengths = [1 + record["num_accepted_draft_tokens"] / record["num_spec_steps"]
                       for record in observation["spec_decode_acceptance"] if record["num_spec_steps"]]
            value = float(exemplar["value"])
            assert any(abs(length - value) < 1e-9 for length in lengths), f"{identity}: {value}, but {json.dumps(observation)}"
            assert series["seriesLabels"]["model_name"] == observation["model"], identity
            seen.add((tap.name, identity))
    return len(seen)
