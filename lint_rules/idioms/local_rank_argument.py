"""PTM608: launchers give the local rank in the environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..edits import Repair, replaced, with_argument
from ..file import File, keyword
from ..rule import Finding, Rule


class LocalRankArgument(Rule):
    code = "PTM608"
    name = "local-rank-argument"
    why = (
        "torch.distributed.launch passed --local_rank; torchrun and ptrun set LOCAL_RANK instead, so that the argument "
        "keeps its default and every process takes the same card."
    )
    fix = "unsafe"
    see = (
        "https://docs.pytorch.org/docs/stable/elastic/run.html#transitioning-from-torch-distributed-launch-to-torchrun"
    )
    calls = ("add_argument",)

    BAD = """
        import argparse
        import os
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=0)
        """
    GOOD = """
        import argparse
        import os
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--local_rank", type=int, default=int(os.environ.get("LOCAL_RANK", 0)))
        local_rank = int(os.environ["LOCAL_RANK"])
        """

    def check_call(self, call: ast.Call, file: File) -> Iterator[Finding]:
        names = {a.value for a in call.args if isinstance(a, ast.Constant)}
        if names & {"--local_rank", "--local-rank"} and "LOCAL_RANK" not in file.text:
            text = "torchrun and ptrun pass no --local_rank; read os.environ['LOCAL_RANK']"
            yield self.finding(call, text, file, _from_environment(call, file))


def _from_environment(call: ast.Call, file: File) -> Repair | None:
    imported = any(a.name == "os" and a.asname is None for s in file.nodes.of(ast.Import) for a in s.names)
    if not imported:
        return None
    default = keyword(call, "default")
    if default is None:
        return with_argument(call, 'default=int(os.environ.get("LOCAL_RANK", 0))')
    if not isinstance(default, (ast.Constant, ast.UnaryOp)):
        return None
    return lambda text: replaced(default, f'int(os.environ.get("LOCAL_RANK", {text.get(default)}))')(text)
