"""What records add up to, computed here from the records alone: the other side of every comparison."""

import collections

RECORDED = ("recorded", "zero_step")


class Figures:
    """Sums over observations."""

    def __init__(self, observations):
        self.exchanges = collections.Counter()
        self.reasons = collections.Counter()
        self.histogram = collections.Counter()
        self.steps = self.accepted = self.drafted = 0
        for observation in observations:
            self.add(observation)

    def add(self, observation):
        if observation["status"] is None or not 200 <= observation["status"] < 300:
            return
        self.exchanges[observation["acceptance"]] += 1
        self.reasons[observation["reason"]] += 1
        if observation["acceptance"] not in RECORDED:
            return
        for record in observation["spec_decode_acceptance"]:
            self.steps += record["num_spec_steps"]
            self.accepted += record["num_accepted_draft_tokens"]
            self.drafted += record["num_draft_tokens"]
            self.histogram.update({int(j): steps for j, steps in record["acceptance_histogram"].items()})

    @property
    def answered(self):
        return sum(self.exchanges.values())

    @property
    def length(self):
        return 1 + self.accepted / self.steps

    @property
    def rate(self):
        return self.accepted / self.drafted

    @property
    def record_share(self):
        return sum(self.exchanges[name] for name in RECORDED) / (self.answered - self.reasons["prefill_leg"])

    def share(self, accepted):
        """Share of the steps that accepted exactly so many drafts."""
        return self.histogram[accepted] / self.steps

    def survival(self, position):
        """Share of the steps that accepted the draft at this position."""
        return sum(steps for accepted, steps in self.histogram.items() if accepted > position) / self.steps


def by(observations, *members):
    """Figures by the values of these members of an observation; none is the empty text, as a label is."""
    groups = collections.defaultdict(list)
    for observation in observations:
        groups[tuple(observation[member] or "" for member in members)].append(observation)
    return {key: Figures(group) for key, group in groups.items()}
