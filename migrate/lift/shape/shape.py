"""A script in the shape that the lift reads: text to text, each step the same program."""

from __future__ import annotations

from collections.abc import Callable

from ...facts.script import Facts
from .appends import append_in_place
from .attempts import open_attempts
from .attributes import name_attributes
from .bars import name_bars, open_bars
from .branches import call_in_one_place
from .closures import give_with_the_batch
from .contexts import enter_by_hand
from .cut_by_hand import cut_by_the_loop
from .endless import draw_from_an_iterator
from .evaluations import inline_evaluation
from .flags import write_out_flags
from .hoist import hoist_passes
from .imported import import_above
from .inline import inline_step
from .iterators import draw_in_a_loop
from .listed import count_what_is_listed
from .loops import around_lone_loop, count_whiles, end_whiles, name_the_epoch, name_the_first
from .modes import switch_in_place
from .over_loaders import draw_by_the_loop
from .parameters import name_given
from .phases import write_out_phases
from .ranges import count_there
from .renewed import keep_one_optimizer
from .resets import begin_apart
from .returns import return_below
from .spread import write_arguments
from .starts import add_the_start, count_from_there
from .stops import stop_before
from .sums import add_in_place
from .walrus import name_before

STEPS: tuple[Callable[[Facts], str | None], ...] = (
    name_the_epoch,
    name_the_first,
    add_the_start,
    count_from_there,
    write_arguments,
    give_with_the_batch,
    name_bars,
    name_given,
    switch_in_place,
    add_in_place,
    append_in_place,
    begin_apart,
    draw_by_the_loop,
    name_before,
    import_above,
    call_in_one_place,
    write_out_flags,
    write_out_phases,
    count_what_is_listed,
    count_there,
    open_attempts,
    enter_by_hand,
    open_bars,
    hoist_passes,
    inline_step,
    inline_evaluation,
    cut_by_the_loop,
    return_below,
    draw_from_an_iterator,
    draw_in_a_loop,
    count_whiles,
    end_whiles,
    stop_before,
    keep_one_optimizer,
    name_attributes,
    around_lone_loop,
)
LIMIT = 20  # more than any script has of them; each step takes one away


def shaped(facts: Facts) -> Facts:
    """The facts of the same program in the lift's shape; the very same object where it has that shape already."""
    for _ in range(LIMIT):
        text = next((new for step in STEPS if (new := step(facts)) is not None), None)
        if text is None:
            break
        facts = facts.after(text)
    return facts
