"""Write the tiny RoBERTa and the golden BERTScore values that `test_bertscore.py` reads.

The values are those of bert-score's default (slow) tokenizer under transformers 4, one
pair at a time, which later versions of transformers no longer give. They were made in a
separate environment with ::

    pip install transformers==4.57.6 bert-score==0.3.13 torch==2.13.0
    python tests/metrics/golden/make_golden.py

Run it again only to change what is tested, and in that environment.
"""

from __future__ import annotations

import json
from pathlib import Path

import bert_score
import torch
import transformers
from tokenizers import ByteLevelBPETokenizer
from transformers import RobertaConfig, RobertaModel, RobertaTokenizer, RobertaTokenizerFast

HERE = Path(__file__).parent
MODEL = HERE / "tiny-roberta"
LAYER = 3
POSITIONS = 66  # 64 tokens: RoBERTa's positions start at 2

SENTENCES = [
    "The bank is next to the river, so the boat is near the water.",
    "A man playing a guitar is making music, therefore he is not sleeping.",
    "People put milk in the refrigerator because it keeps food cold.",
    "An elephant cannot fit into a refrigerator because it is too big.",
    "The children are outside; a park is outside.",
    "Someone who runs is moving, and moving is not standing still.",
]
LONG = " ".join(SENTENCES)
PAIRS = [
    ("the boat is near the water", "the bank is next to the river"),
    ("the boat is near the water", "the boat is near the water"),
    ("a man is sleeping", "a man playing a guitar is not sleeping"),
    ("An elephant is too big.", "an elephant is too big"),
    ("MILK", "milk"),
    ("milk", "refrigerator"),
    ("the", "the"),
    ("water water water water", "water"),
    ("  the park is outside \n", "the park is outside"),
    ("the  park   is outside", "the park is outside"),
    ("tabs\tand\nnew lines", "tabs and new lines"),
    ("?!...", "what?!"),
    ("it's 3.5% of $20, isn't it?", "it is 3.5 percent of 20 dollars"),
    ("naïve café", "naive cafe"),
    ("水は冷たい", "the water is cold"),
    ("🙂🙂", "🙂"),
    ("a", "b"),
    ("'", '"'),
    ("UNK", "people put milk in the refrigerator"),
    ("<s> a tag </s> in the text", "a tag in the text"),
    (LONG, "the boat is near the water"),
    ("someone who runs is moving", LONG + " " + LONG),
    (LONG, LONG[::-1]),
    ("", "the boat is near the water"),
    ("the boat is near the water", " \t\n"),
    ("", ""),
]


def make_model() -> None:
    MODEL.mkdir(exist_ok=True)
    trained = ByteLevelBPETokenizer()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    trained.train_from_iterator(SENTENCES * 20, vocab_size=400, min_frequency=2, special_tokens=special)
    trained.save_model(str(MODEL))
    files = {"vocab_file": str(MODEL / "vocab.json"), "merges_file": str(MODEL / "merges.txt")}
    RobertaTokenizerFast(**files, model_max_length=POSITIONS - 2).save_pretrained(MODEL)
    config = RobertaConfig(
        vocab_size=len(RobertaTokenizer(**files)),
        hidden_size=32,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=POSITIONS,
        type_vocab_size=1,
        initializer_range=0.3,  # large, for scores that spread
    )
    torch.manual_seed(0)
    RobertaModel(config, add_pooling_layer=False).save_pretrained(MODEL)


def main() -> None:
    make_model()
    scorer = bert_score.BERTScorer(model_type=str(MODEL), num_layers=LAYER, device="cpu")
    assert isinstance(scorer._tokenizer, RobertaTokenizer), "the slow tokenizer: transformers 4 only"
    rows = []
    for candidate, reference in PAIRS:
        precision, recall, f1 = (value.item() for value in scorer.score([candidate], [reference]))
        rows.append(
            {
                "candidate": candidate,
                "reference": reference,
                "precision": precision,
                "recall": recall,
                "f1": f1,
            }
        )
    golden = {
        "made_with": {
            "bert-score": "0.3.13",
            "transformers": transformers.__version__,
            "torch": torch.__version__,
        },
        "layer": LAYER,
        "pairs": rows,
    }
    text = json.dumps(golden, ensure_ascii=False, indent=1) + "\n"
    (HERE / "golden.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
