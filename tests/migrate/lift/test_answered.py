"""Where a phase or a flag is known, what asks for it goes, and what stays reads as a person would write it."""

import pytest

from tests.migrate.lift.test_shapes import PHASES
from tests.migrate.running import check_same

SHOWN = "            print(f'{phase} {average:.6f} {accuracy:.4f}')\n"


def test_the_loop_over_phases_reads_as_two_passes():
    text = check_same(PHASES, "module")
    assert "self.print(f'train {average:.6f} {accuracy:.4f}')" in text and "f'val {average" in text
    assert "        if accuracy > self.best:\n" in text


def test_gradients_are_not_zeroed_in_the_evaluation():
    assert "zero_grad" not in check_same(PHASES, "module")


@pytest.mark.parametrize(
    ("line", "train", "val"),
    [
        ("if phase == 'val' and best and accuracy:", None, "if self.best and accuracy:"),
        ("if best and phase == 'val':", None, "if self.best:"),
        ("if (phase == 'val'  # then\n                    and best):", None, "if (True  # then\n"),
        ("if best and (phase == 'train' or accuracy):", "if self.best:", "if self.best and (accuracy):"),
        ("if phase != 'val' or best:", "print", "if self.best:"),
        ("if (best, phase == 'val' and best)[1]:", "if (self.best, False)[1]:", "if (self.best, self.best)[1]:"),
        ("if (best, best and phase == 'val')[1]:", "if (self.best, False)", "if (self.best, self.best and True)[1]:"),
    ],
)
def test_a_part_of_a_test_that_is_known_goes(line, train, val):
    text = check_same(PHASES.replace(SHOWN, f"            {line}\n                print(phase, best)\n"), "module")
    for shown in (train, val):
        assert shown is None or shown in text


@pytest.mark.parametrize(
    ("shown", "made"),
    [
        ("f'{phase!r} {best}'", "f'{\"train\"!r} {self.best}'"),
        ("f'{phase:>5} {best}'", "f'{\"train\":>5} {self.best}'"),
        ("f'{{phase}} {phase}'", "f'{{phase}} train'"),
        ("'%s' % phase", "'%s' % 'train'"),
        ("f'{phase}', best", "'train', self.best"),
        ("f'{phase}_{phase}'", "'train_train'"),
        ("f'{phase}' f'{best}'", "f'train' f'{self.best}'"),
        ('f"{loaders[phase].batch_size}"', "f\"{loaders['train'].batch_size}\""),
    ],
)
def test_the_phase_is_written_into_what_is_shown(shown, made):
    text = check_same(PHASES.replace(SHOWN, f"            print({shown})\n"), "module")
    assert f"self.print({made})" in text
