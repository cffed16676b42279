import pytest
from helpers import check, check_unchanged, migrated


def test_a_wait_for_the_device():
    check(
        """
        import torch
        def timed(f):
            # all that was asked for is done
            torch.cuda.synchronize()  # waits
            return f()
        """,
        """
        import torch
        def timed(f):
            # all that was asked for is done
            if torch.cuda.is_available():
                torch.cuda.synchronize()  # waits
            return f()
        """,
        ["PTM112 line 4: `torch.cuda.synchronize()` raises without CUDA"],
        select="PTM112",
    )


@pytest.mark.parametrize(
    ("imports", "call"),
    [
        ("import torch as t", "t.cuda.reset_peak_memory_stats(0)"),
        ("from torch import cuda", "cuda.synchronize()"),
        ("import torch.cuda", "torch.cuda.ipc_collect()"),
    ],
)
def test_by_any_name(imports, call):
    module = call.rsplit(".", 1)[0]
    source = f"{imports}\nfor i in range(3):\n    {call}\n"
    asked = f"{imports}\nfor i in range(3):\n    if {module}.is_available():\n        {call}\n"
    check(source, asked, ["PTM112 line 3"], select="PTM112")


def test_a_try_that_catches_nothing():
    before = "import torch\ntry:\n    f()\nfinally:\n    torch.cuda.synchronize()\n"
    after = before.replace("    torch.cuda.s", "    if torch.cuda.is_available():\n        torch.cuda.s")
    check(before, after, ["PTM112 line 5"], select="PTM112")


def test_at_the_top_of_a_file():
    check(
        "import torch\ntorch.cuda.synchronize()\nif x:\n  y()\n",
        "import torch\nif torch.cuda.is_available():\n  torch.cuda.synchronize()\nif x:\n  y()\n",
        select="PTM112",
    )


@pytest.mark.parametrize(
    "source",
    [
        "import torch\nif torch.cuda.is_available():\n    torch.cuda.synchronize()\n",
        "import torch\nif args.use_cuda:\n    torch.cuda.synchronize()\n",
        "import torch\nif device.type == 'x':\n    for x in y:\n        torch.cuda.synchronize()\n",
        "import torch\ntry:\n    torch.cuda.synchronize()\nexcept Exception:\n    pass\n",
        "import torch\ntorch.cuda.empty_cache()\ntorch.cuda.manual_seed_all(1)\n",
        "import torch\npeak = torch.cuda.reset_peak_memory_stats()\n",
        "import torch\nwait = torch.cuda.synchronize\nwait()\n",
        "import torch\nclock.cuda.synchronize()\nsynchronize()\n",
        "import torch\ntext = 'torch.cuda.synchronize()'  # torch.cuda.synchronize()\n",
    ],
)
def test_what_stays(source):
    check_unchanged(source, [], select="PTM112")


@pytest.mark.parametrize("imported", ["import torch\n", "import torch\nimport torch.nn as nn\n", ""])
def test_by_a_name_that_was_imported(imported):
    source = imported + "from torch.cuda import synchronize as wait\nf()\nwait()\n"
    after = source.replace("wait()\n", "if torch.cuda.is_available():\n    wait()\n")
    check(source, after if imported else "import torch\n" + after, ["PTM112 line "], select="PTM112")


@pytest.mark.parametrize(
    "source",
    [
        "from torch.cuda import synchronize\nimport mine as torch\nsynchronize()\n",
        "from clock import synchronize\nimport torch\nsynchronize()\n",
        "import torch\nfrom torch.cuda import synchronize\nsynchronize = print\nsynchronize()\n",
        "import torch\nfrom torch.cuda import synchronize, is_available\nif is_available():\n    synchronize()\n",
    ],
)
def test_other_names_and_questions_that_are_asked(source):
    check_unchanged(source, [], select="PTM112")


@pytest.mark.parametrize(
    ("line", "lines"),
    [
        ("x = 1; torch.cuda.synchronize(); y = 2; z = 3  # all", ["x = 1", "?", "y = 2; z = 3  # all"]),
        ("torch.cuda.synchronize(); torch.cuda.empty_cache()", ["?", "torch.cuda.empty_cache()"]),
        ("torch.cuda.synchronize(); torch.cuda.synchronize()  # both", ["?", "?  # both"]),
        ("torch.cuda.synchronize();", ["?"]),
        ("torch.cuda.synchronize();  # all", ["?  # all"]),
        ("torch.cuda.synchronize(); x = 1;  # all", ["?", "x = 1;  # all"]),
    ],
)
def test_statements_of_one_line(line, lines):
    """Beside another it was left, and asked for by a second run that found it alone."""
    asked = "if torch.cuda.is_available():\n    torch.cuda.synchronize()"
    after = "".join(x.replace("?", asked) + "\n" for x in lines)
    check(f"import torch\n# first\n{line}\n", f"import torch\n# first\n{after}")


def test_beside_what_goes():
    source = (
        "import torch\ndef f(model, loader):\n    for x in loader:\n        loss = model(x)\n        loss.backward()\n"
    )
    result = migrated(source + "        torch.cuda.synchronize(); torch.cuda.empty_cache()\n")
    asked = "            torch.cuda.synchronize()\n"
    assert result.text.endswith("        if torch.cuda.is_available():\n" + asked)
    assert migrated(result.text).text == result.text


@pytest.mark.parametrize(
    "line",
    [
        "stream = torch.cuda.Stream()",
        "start = torch.cuda.Event(enable_timing=True)",
        "torch.cuda.current_stream().wait_stream(side)",
        "print(torch.cuda.get_device_name(0))",
        "torch.cuda.nvtx.range_push('step')",
        "if go:\n    stream = torch.cuda.Stream()",
        "stream = torch.cuda.Stream() if go else None",
    ],
)
def test_what_else_asks_cuda_itself_is_told_of(line):
    check_unchanged(
        f"import torch\n{line}\n", [f"PTM112 line {line.count(chr(10)) + 2}: `torch.cuda."], select="PTM112"
    )


def test_it_is_told_of_once():
    source = "import torch\n" + "stream = torch.cuda.Stream()\n" * 3
    check_unchanged(source, ["PTM112 line 2: `torch.cuda.Stream()` raises where there is no CUDA"], select="PTM112")


@pytest.mark.parametrize(
    "line",
    [
        "if torch.cuda.is_available():\n    stream = torch.cuda.Stream()",
        "stream = torch.cuda.Stream() if use_cuda else None",
        "stream = use_cuda and torch.cuda.Stream()",
        "try:\n    name = torch.cuda.get_device_name(0)\nexcept Exception:\n    name = None",
        "used = torch.cuda.memory_allocated()",
        "with torch.cuda.stream(None):\n    go()",
        "stream = mine.cuda.Stream()",
    ],
)
def test_what_is_asked_for_or_raises_nowhere_is_not_told_of(line):
    check_unchanged(f"import torch\nimport mine\n{line}\n", [], select="PTM112")
