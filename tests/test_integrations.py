"""What trainers of others do with a loss, and what another runtime makes of a head and its thresholds."""

import numpy as np
import pytest
import torch
from torch import nn

import scoreloss as sl
from scoreloss.torch import BCE, SigmoidF1
from tests.conftest import needs

pytestmark = pytest.mark.slow


def gradient(head, loss, *batches):
    """Of the weights: the mean over batches."""
    head.zero_grad()
    for x, y in batches:
        (loss(head(x), y) / len(batches)).backward()
    return head.weight.grad.clone()


@pytest.fixture
def data():
    torch.manual_seed(0)
    return torch.randn(16, 5), (torch.rand(16, 3) < 0.4).float()


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("loss", [BCE(), SigmoidF1()], ids=lambda loss: type(loss).__name__)
def test_a_step_of_the_hugging_face_trainer(loss, data, tmp_path):
    """The share makes a mean over micro-batches of its sum: for F1 that is not the batch, without it neither is."""
    for package in ("transformers", "accelerate"):
        needs(package)
    from transformers import Trainer, TrainingArguments
    from transformers.modeling_outputs import SequenceClassifierOutput

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.linear = nn.Linear(5, 3)

        def forward(self, x, labels=None):
            return SequenceClassifierOutput(logits=self.linear(x))

    class InOrder(Trainer):
        def _get_train_sampler(self, train_dataset=None):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    def compute_loss(outputs, labels, num_items_in_batch=None):
        share = 1 if num_items_in_batch is None else labels.numel() / num_items_in_batch
        return share * loss(outputs.logits, labels)

    def without_share(outputs, labels, num_items_in_batch=None):
        return loss(outputs.logits, labels)

    def step(compute, pieces):
        """What a step of plain gradient descent takes from the weights."""
        model = Head()
        before = model.linear.weight.detach().clone()
        arguments = TrainingArguments(
            str(tmp_path),
            max_steps=1,
            per_device_train_batch_size=16 // pieces,
            gradient_accumulation_steps=pieces,
            optim="sgd",
            learning_rate=1.0,
            lr_scheduler_type="constant",
            max_grad_norm=0.0,
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
            use_cpu=True,
            dataloader_pin_memory=False,
        )
        rows = [{"x": x, "labels": y} for x, y in zip(*data, strict=True)]
        InOrder(model, arguments, train_dataset=rows, compute_loss_func=compute).train()
        return before - model.linear.weight.detach()

    x, y = data
    whole = gradient(Head().linear, loss, (x, y))
    halves = gradient(Head().linear, loss, (x[:8], y[:8]), (x[8:], y[8:]))
    torch.testing.assert_close(step(compute_loss, 1), whole, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(step(compute_loss, 2), halves, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(step(without_share, 2), 2 * halves, atol=1e-6, rtol=1e-5)
    assert torch.allclose(halves, whole, atol=1e-6) == isinstance(loss, BCE)


@pytest.fixture(scope="module")
def onnx_example():
    for package in ("onnxruntime", "onnxscript"):
        needs(package)
    import importlib.util

    from tests.test_docs import ROOT

    spec = importlib.util.spec_from_file_location("onnx_export", ROOT / "examples/onnx_export.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def labels_of(example, path, head, loss, thresholds, features):
    """What onnxruntime says of features."""
    import onnxruntime

    example.export(example.Decider(head, loss, thresholds), features.shape[1], path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    labels, scores = session.run(None, {"features": features.numpy()})
    with torch.no_grad():
        np.testing.assert_allclose(scores, loss.scores(head(features)).numpy(), atol=1e-6)
    return labels


@pytest.mark.filterwarnings("default")
def test_onnxruntime_decides_as_we_do_on_the_same_logits(onnx_example, tmp_path):
    """Through a head that changes nothing: every logit, the thresholds themselves, and their neighbours."""
    torch.manual_seed(0)
    logits = torch.randn(20_000, 8)
    head = nn.Linear(8, 8)
    with torch.no_grad():
        head.weight.copy_(torch.eye(8))
        head.bias.zero_()
    loss = SigmoidF1(slope=2.0, offset=0.5)
    targets = torch.rand(20_000, 8) < torch.sigmoid(2 * logits)
    rule = sl.PerLabel("f1").fit(targets[:2_000], logits[:2_000])
    rule.thresholds_[7] = np.inf  # "above all of them": a label that is never predicted
    at = torch.from_numpy(rule.thresholds_).float()
    above, below = (torch.nextafter(at, torch.full((8,), end)) for end in (torch.inf, -torch.inf))
    own = torch.full((8,), float(loss.boundary))
    rows = torch.stack([row.nan_to_num(posinf=1.0) for row in (at, above, below, own)])
    features = torch.cat([logits, rows])
    labels = labels_of(onnx_example, tmp_path / "m.onnx", head, loss, rule.thresholds_, features)
    np.testing.assert_array_equal(labels, rule.predict(features))
    assert labels[-4, :7].all()
    assert labels[-3, :7].all()
    assert not labels[-2].any()
    own_labels = labels_of(onnx_example, tmp_path / "o.onnx", head, loss, loss.boundary, features)
    np.testing.assert_array_equal(own_labels, (loss.scores(features) >= 0.5).numpy())
    assert own_labels[-1].all()


@pytest.mark.filterwarnings("default")
def test_onnxruntime_decides_as_we_do_where_no_sum_is_rounded(onnx_example, tmp_path):
    """Features are whole and weights in halves: one logit in twenty is a tie, and all are exact in any order."""
    rng = np.random.default_rng(0)
    features = torch.from_numpy(rng.integers(-2, 3, (5_000, 16))).float()
    head = nn.Linear(16, 6)
    with torch.no_grad():
        head.weight.copy_(torch.from_numpy(rng.integers(-2, 3, (6, 16)) / 2))
        head.bias.copy_(torch.from_numpy(rng.integers(-2, 3, 6) / 2))
        logits = head(features)
    thresholds = np.array([0.0, 0.5, -0.5, 1.0, 2.0, -1.0])
    ties = (logits.numpy() == thresholds).sum()
    assert ties > 1_000
    labels = labels_of(onnx_example, tmp_path / "m.onnx", head, SigmoidF1(), thresholds, features)
    np.testing.assert_array_equal(labels, logits.numpy() >= thresholds)


@pytest.mark.filterwarnings("default")
def test_lightning_reports_the_score_of_the_epoch():
    needs("lightning")
    import importlib.util

    import lightning
    from torch.utils.data import DataLoader, TensorDataset

    from tests.test_docs import ROOT

    spec = importlib.util.spec_from_file_location("lightning_fit", ROOT / "examples/lightning_fit.py")
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    torch.manual_seed(0)
    x, y = torch.randn(60, 5), (torch.rand(60, 3) < 0.4).float()
    module = example.Labels(5, sl.label_frequencies(y))
    nn.init.normal_(module.network[-1].weight)  # so that something is predicted
    trainer = lightning.Trainer(
        accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    (found,) = trainer.validate(module, DataLoader(TensorDataset(x, y), batch_size=16), verbose=False)
    with torch.no_grad():
        scores = module.loss.scores(module(x))
    whole = sl.evaluate(y, scores)["macro_f1"]
    assert found["macro_f1"] == pytest.approx(whole, abs=1e-6)
    parts = [sl.evaluate(y[i : i + 16], scores[i : i + 16])["macro_f1"] for i in range(0, 60, 16)]
    assert abs(np.mean(parts) - whole) > 1e-3
