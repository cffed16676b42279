"""PTM203: a class that exists only while the file is the main program."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ..file import File
from ..rule import Finding, Rule


class ClassUnderGuard(Rule):
    code = "PTM203"
    name = "class-under-main-guard"
    why = (
        "A spawned process imports the file without running what is under `if __name__ == '__main__'`, so it cannot "
        "find a class that is defined there, and unpickling fails. Define classes at the top of the module."
    )

    BAD = """
        import torch
        if __name__ == "__main__":
            class Data(torch.utils.data.Dataset):
                pass
        """
    GOOD = """
        import torch
        class Data(torch.utils.data.Dataset):
            pass
        if __name__ == "__main__":
            data = Data()
        """

    def check_if(self, branch: ast.If, file: File) -> Iterator[Finding]:
        if not is_main_guard(branch):
            return
        for statement in branch.body:
            if isinstance(statement, ast.ClassDef) and _is_sent(statement, file):
                yield self.finding(statement, f"class {statement.name} exists in the main process only", file)


def _is_sent(c: ast.ClassDef, file: File) -> bool:
    """Whether its instances may go to other processes: modules, data sets, transforms, collate functions."""
    methods = {s.name for s in c.body if isinstance(s, ast.FunctionDef)}
    return c in file.classes.kinds or bool(methods & {"__call__", "__getitem__", "__iter__", "forward"})


def is_main_guard(node: ast.AST) -> bool:
    """`if __name__ == "__main__":`"""
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and any(isinstance(n, ast.Name) and n.id == "__name__" for n in (node.test.left, *node.test.comparators))
    )
