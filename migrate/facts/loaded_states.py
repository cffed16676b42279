"""Whether a project reads states of modules: a key that they had not before would be missing, or one too many there."""

from __future__ import annotations

import ast
import re

from .loops import last_part
from .nodes import walk
from .script import Facts, once_a_file

# `net.load_state_dict(...)`, and a state that is gone through; an optimizer's has no buffers
READS = re.compile(
    r"(?<!optimizer)(?<!optim)(?<!scheduler)(?<!scaler)\.load_state_dict\("
    r"|\bstate_dict\(\)\.(items|values|keys)\("
    r"|\b(sorted|len|list|set|dict|tuple|iter|enumerate|zip|map|print|OrderedDict)\([\w., ]*\.state_dict\(\)"
    r"|(\bin|^\s*[\w.]+ *=)\s+[\w.]+\.state_dict\(\)",
    re.MULTILINE,
)


@once_a_file
def reads_states(facts: Facts) -> bool:
    """A module's `load_state_dict`, or what goes through the tensors of its state."""
    return facts.states_read or any(loads(text) for text in (facts.text.text, *(o.text for o in facts.others)))


def loads(text: str) -> bool:
    """Whether a file does so."""
    return "state_dict" in text and READS.search(text) is not None


def saves_state(call: ast.Call) -> bool:
    """`torch.save(net.state_dict(), path)`, which no data set gives."""
    return any(last_part(c.func) == "state_dict" for a in call.args[:1] for c in walk(a, ast.Call))
