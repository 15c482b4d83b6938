"""Film titles with the Trainer of Hugging Face: the loss goes in by ``compute_loss_func``.

python examples/hf_trainer.py [EPOCHS]

The model is a small DistilBERT with random weights and a vocabulary of its own, so nothing is downloaded. Yours comes
by ``from_pretrained``, with ``num_labels``; all else stays as it is.
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
from torch import Tensor
from transformers import (
    DataCollatorWithPadding,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    EvalPrediction,
    PreTrainedTokenizerFast,
    Trainer,
    TrainingArguments,
    set_seed,
)

import scoreloss as sl
from scoreloss.data import load
from scoreloss.torch import SigmoidF1, start_at_priors

FILMS, WORDS = 4_000, 2_000


def main() -> None:
    epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    set_seed(0)
    films = load("movies")
    chosen = np.random.default_rng(0).permutation(np.flatnonzero(films.targets.any(axis=1)))[:FILMS]
    titles, genres = [films.inputs[i] for i in chosen], films.targets[chosen]
    train, validation, test = np.split(np.arange(FILMS), [FILMS * 6 // 10, FILMS * 8 // 10])

    tokenizer = tokenizer_of([titles[i] for i in train])
    model = DistilBertForSequenceClassification(
        DistilBertConfig(
            vocab_size=len(tokenizer),
            dim=64,
            hidden_dim=128,
            n_layers=1,
            n_heads=2,
            max_position_embeddings=64,
            num_labels=len(films.labels),
        )
    )
    loss = SigmoidF1()
    start_at_priors(model.classifier, sl.label_frequencies(genres[train]), loss)

    def compute_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | None = None) -> Tensor:
        # The Trainer adds up what its micro-batches give, and divides by nothing: each gives its share of the step.
        share = 1.0 if num_items_in_batch is None else labels.numel() / num_items_in_batch
        return share * loss(outputs.logits, labels)

    def scores_of(predicted: EvalPrediction) -> Tensor:
        return loss.scores(torch.from_numpy(predicted.predictions))

    def compute_metrics(
        predicted: EvalPrediction,
    ) -> dict[str, float]:  # of all examples, not a mean of batches
        metrics = sl.evaluate(predicted.label_ids, scores_of(predicted))
        return {name: metrics[name] for name in ("micro_f1", "macro_f1", "weighted_f1")}

    def examples(part: np.ndarray) -> Any:
        encoded = tokenizer([titles[i] for i in part], truncation=True, max_length=32)["input_ids"]
        return [
            {"input_ids": ids, "labels": genres[i].astype("float32")}
            for ids, i in zip(encoded, part, strict=True)
        ]

    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model,
            TrainingArguments(
                folder,
                num_train_epochs=epochs,
                per_device_train_batch_size=128,  # in one piece: see docs/integrations.md on accumulation
                learning_rate=1e-3,
                save_strategy="no",
                logging_strategy="no",
                report_to="none",
                disable_tqdm=True,
                dataloader_pin_memory=False,
                use_cpu=True,
            ),
            data_collator=DataCollatorWithPadding(tokenizer),
            train_dataset=examples(train),
            compute_loss_func=compute_loss,
            compute_metrics=compute_metrics,
        )
        trainer.train()
        found, held_out = trainer.predict(examples(test)), trainer.predict(examples(validation))

    own = found.metrics
    print(
        f"own boundary  macro F1 {100 * own['test_macro_f1']:.1f}  micro F1 {100 * own['test_micro_f1']:.1f}"
    )
    rule = sl.PerLabel("f1", min_positives=5).fit(held_out.label_ids, scores_of(held_out))
    tuned = sl.evaluate(found.label_ids, scores_of(found), rule.thresholds_)
    print(f"PerLabel      macro F1 {100 * tuned['macro_f1']:.1f}  micro F1 {100 * tuned['micro_f1']:.1f}")


def tokenizer_of(texts: list[str]) -> PreTrainedTokenizerFast:
    """A number for each of the commonest words."""
    words = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    words.normalizer = normalizers.BertNormalizer()
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = ["[PAD]", "[UNK]"]
    words.train_from_iterator(texts, trainers.WordLevelTrainer(vocab_size=WORDS, special_tokens=special))
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]")


if __name__ == "__main__":
    main()
