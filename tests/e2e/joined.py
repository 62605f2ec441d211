"""A view of streams in which it does not matter how many steps vLLM put into one event.

On a busy machine vLLM joins the output of several steps. Texts and token lists of a choice are therefore put together,
and events that then look alike, one after the other, count as one; everything else stays as it was sent, the order of
members included.
"""

import copy
import json

TEXTS = {"content", "text", "reasoning", "reasoning_content", "arguments"}


def of_body(body):
    """The view of a body; one that is not streamed counts as one chunk."""
    if not body.startswith(b"data:"):
        return [], of_chunks([json.loads(body)])
    lines = [line for event in body.split(b"\n\n") for line in event.split(b"\n") if line]
    others = [line for line in lines if not line.startswith(b"data: {")]
    return others, of_chunks([json.loads(line[6:]) for line in lines if line.startswith(b"data: {")])


def of_chunks(chunks):
    """The view of a stream's objects."""
    skeletons, contents = {}, {}
    for chunk in chunks:
        chunk = copy.deepcopy(chunk)
        choices = chunk.get("choices") or []
        index = choices[0].get("index") if choices else None
        for choice in choices:
            take_content(choice, contents.setdefault(index, {}))
            if chunk.get("usage"):
                # Usage on every event counts what was sent so far.
                chunk["usage"] = "running"
        skeleton = json.dumps(chunk)
        own = skeletons.setdefault(index, [])
        if not own or own[-1] != skeleton:
            own.append(skeleton)
    return skeletons, contents


def without_texts(skeletons):
    """The view where the texts differ: whether an event had any text is chance, too, the finish event above all."""
    kept = {}
    for index, own in skeletons.items():
        bare = [skeleton.replace('{"content": ""}', "{}") for skeleton in own]
        kept[index] = [one for number, one in enumerate(bare) if number == 0 or bare[number - 1] != one]
    return kept


def take_content(value, contents, key=None):
    """Moves texts and lists of tokens out of a choice."""
    members = value.items() if isinstance(value, dict) else enumerate(value)
    for name, member in members:
        if name in TEXTS and isinstance(member, str):
            contents[name] = contents.get(name, "") + member
            value[name] = "" if member else member
        elif name == "token_ids" and isinstance(member, list) or (key == "logprobs" and isinstance(member, list)):
            contents.setdefault((key, name), []).extend(member)
            value[name] = []
        elif isinstance(member, (dict, list)):
            take_content(member, contents, name)
