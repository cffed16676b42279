import textwrap

import pytest
from helpers import check, check_unchanged

HEAD = "import torch\nimport torch.distributed as dist\n"
INIT = "dist.init_process_group('nccl')\n"


def meter(body: str, head: str = HEAD) -> str:
    return f"{head}class Meter:\n    def sync(self, device):\n{textwrap.indent(body, ' ' * 8)}\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("return torch.tensor([self.n], device=device).item()", "return torch.tensor([self.n]).item()"),
        (
            "t = torch.tensor([self.n], device='cuda')\nreturn t[0].item()",
            "t = torch.tensor([self.n])\nreturn t[0].item()",
        ),
        ("t = torch.zeros(2).cuda()  # two\nreturn t.tolist()", "t = torch.zeros(2)  # two\nreturn t.tolist()"),
        (
            "t = torch.tensor(self.n, device='cuda')\nt = t.tolist()\nself.n = f(t)",
            "t = torch.tensor(self.n)\nt = t.tolist()\nself.n = f(t)",
        ),
    ],
)
def test_what_only_numbers_are_read_of_needs_no_device(before: str, after: str) -> None:
    check(meter(before), meter(after), select="PTM104")


@pytest.mark.parametrize("reduced", ["dist.all_reduce(t)", "dist.all_reduce(tensor=t, op=dist.ReduceOp.SUM)"])
def test_sums_over_processes_go_and_with_them_the_device(reduced: str) -> None:
    """A meter of counts: the result asked for CUDA, and for nothing."""
    before = "t = torch.tensor([self.n, self.s], dtype=torch.float64, device='cuda')\n"
    before += f"dist.barrier()\n{reduced}\nt /= dist.get_world_size()\nt = t.tolist()\nself.n = t[0]"
    after = "t = torch.tensor([self.n, self.s], dtype=torch.float64)\nt = t.tolist()\nself.n = t[0]"
    check(meter(before, HEAD + INIT), meter(after))


@pytest.mark.parametrize(
    "body",
    [
        "t = torch.tensor([self.n], device=device)\nreturn t",
        "t = torch.tensor([self.n], device=device)\nreturn t.item() + t",
        "t = torch.tensor([self.n], device=device)\nf(t)\nreturn t.item()",
        "t = torch.tensor([self.n], device=device)\ndist.all_reduce(t)\nreturn t.item()",  # not by this script's hand
        "self.t = torch.tensor([self.n], device=device)\nreturn self.t.item()",
        "t = torch.tensor([self.n], device=device)\nif self.n:\n    t = other\nreturn t.item()",
        "t = torch.tensor([self.n], device=device)\nt += other\nreturn t.item()",
        "t = torch.zeros(2).to(device, torch.half)\nreturn t.tolist()",
    ],
)
def test_others_are_told_of(body: str) -> None:
    result = check_unchanged(meter(body), select="PTM104")
    assert result.attention
