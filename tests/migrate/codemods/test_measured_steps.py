"""Measures of packages in steps: those that are no mean over the samples need the whole batch where they count."""

import pytest
from cut_steps import HEAD, end, step
from helpers import check, check_unchanged

IMPORTS = """\
from sklearn.metrics import accuracy_score, f1_score
from sklearn import metrics
from torchmetrics.functional import accuracy, auroc, pairwise_cosine_similarity
from torchmetrics.functional.classification import binary_f1_score
"""
MEASURES = [
    "f1_score(y.cpu().numpy(), z.argmax(1).cpu().numpy())",
    "metrics.roc_auc_score(y.numpy(), z.numpy())",
    'auroc(z, y, task="binary")',
    "binary_f1_score(z, y)",
]
MEANS = ["accuracy_score(y.numpy(), z.argmax(1).numpy())", 'accuracy(z, y, task="binary")', "f1_of_my_own(y, z)"]
TAKEN = "x, y = batch\nz = self(x)\n"


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("kind", ["validation", "test"])
def test_what_evaluation_logs(measure, kind):
    log = f'self.log("m", {measure})'
    check(
        IMPORTS + HEAD + step(TAKEN + log, kind),
        IMPORTS
        + HEAD
        + step(TAKEN + 'return {"y": y, "z": z}', kind)
        + end(f'y = outputs["y"]\nz = outputs["z"]\n{log}', "outputs", kind),
        select="PTM430",
    )


@pytest.mark.parametrize("measure", MEANS)
def test_means_over_the_samples_stay(measure):
    body = TAKEN + f'self.log("m", {measure})'
    check_unchanged(IMPORTS + HEAD + step(body, "validation"), [], select="PTM430")


@pytest.mark.parametrize("measure", MEASURES)
def test_what_training_logs_only_stays(measure):
    body = TAKEN + f'self.log("m", {measure})\nreturn self.criterion(z, y)'
    check_unchanged(IMPORTS + HEAD + step(body), [], select="PTM430")


def test_similarities_of_all_pairs():
    check(
        IMPORTS + HEAD + step("z = self(batch)\nreturn pairwise_cosine_similarity(z).exp().mean()"),
        IMPORTS
        + HEAD
        + step("z = self(batch)\nreturn z")
        + end("return pairwise_cosine_similarity(z).exp().mean()", "z"),
        select="PTM430",
    )
