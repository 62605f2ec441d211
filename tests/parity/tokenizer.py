#!/usr/bin/env python3
"""Lays a tiny tokenizer out as an entry of a hub's cache, since AIPerf insists on one: tokenizer.py HF_HOME"""

import json
import pathlib
import sys

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

NAME = "spectap/parity"


def make(home):
    """Writes it below `home`, unless it is there."""
    revision = "0" * 40
    repository = pathlib.Path(home) / "hub" / ("models--" + NAME.replace("/", "--"))
    snapshot = repository / "snapshots" / revision
    if (snapshot / "tokenizer_config.json").exists():
        return
    snapshot.mkdir(parents=True, exist_ok=True)
    (repository / "refs").mkdir(exist_ok=True)
    (repository / "refs" / "main").write_text(revision)
    tokenizer = Tokenizer(models.BPE(unk_token=None))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<|eos|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    text = "the a of to and in that it is was he for on are with as his they tok"
    tokenizer.train_from_iterator([text] * 20, trainer)
    tokenizer.save(str(snapshot / "tokenizer.json"))
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|eos|>", "model_max_length": 1000000}
    (snapshot / "tokenizer_config.json").write_text(json.dumps(config))


if __name__ == "__main__":
    make(sys.argv[1])
