"""PTM608: launchers give the local rank in the environment."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule


class LocalRankArgument(Rule):
    code = "PTM608"
    name = "local-rank-argument"
    why = (
        "torch.distributed.launch passed --local_rank; torchrun and ptrun set LOCAL_RANK instead, so that the argument "
        "keeps its default and every process takes the same card."
    )
    see = (
        "https://docs.pytorch.org/docs/stable/elastic/run.html#transitioning-from-torch-distributed-launch-to-torchrun"
    )
    calls = ("add_argument",)

    BAD = """
        import argparse
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
            yield self.finding(call, "torchrun and ptrun pass no --local_rank; read os.environ['LOCAL_RANK']", file)
