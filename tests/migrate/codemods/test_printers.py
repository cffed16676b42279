"""What libraries have for print(): rank 0 alone says it, and what it says of a batch is of the whole one."""

from functools import partial

import pytest
from ptmigrate.migrate.codemods.base import apply
from ptmigrate.migrate.codemods.once import Once
from ptmigrate.migrate.facts.script import Facts
from ptmigrate.migrate.migrate import migrate_text

from tests import forked


def once(source: str) -> str:
    facts = Facts(source)
    return apply(facts, list(Once().plan(facts)))


CALLS = {
    "import click": "click.echo",
    "from click import secho": "secho",
    "import typer": "typer.echo",
    "import rich": "rich.print",
    "from rich import print as show": "show",
    "from termcolor import cprint": "cprint",
    "from loguru import logger": "logger.success",
    "from loguru import logger as log": "log.info",
    "from rich.console import Console\nout = Console(width=80)": "out.print",
    "import rich.console\nout = rich.console.Console()": "out.rule",
    "from rich.console import Console": "Console().log",
    "from rich import get_console\nout = get_console()": "out.print_json",
}


@pytest.mark.parametrize("made", CALLS)
def test_rank_0_alone_prints(made):
    text = f"{made}\n{CALLS[made]}('x')\n"
    assert once(text) == f"{made}\non_rank_zero({CALLS[made]})('x')\n"


HELD = """\
from rich.console import Console


class Loop:
    def __init__(self, out):
        self.out = out

    def say_both(self, own):
        self.out.print('x')
        own.print('y')


def say(where, text):
    where.print(text)


console = Console()
Loop(console).say_both(own=console)
say(console, 'z')
"""


def test_an_object_that_is_given_on():
    result = once(HELD)
    assert result.count("on_rank_zero(") == 3
    assert "on_rank_zero(self.out.print)('x')" in result and "on_rank_zero(own.print)('y')" in result


@pytest.mark.parametrize(
    "text",
    [
        "click = Clicks()\nclick.echo('x')\n",
        "from mine import echo\necho('x')\n",
        "import click\ntext = click.style('x')\n",
        "import click\nclick.confirm('x')\n",
        "import rich\nrich.inspect(3)\n",
        "from rich.table import Table\nt = Table()\nt.add_row('x')\n",
        "from rich.console import Console\nout = Console()\ntext = out.print('x')\n",
        "from rich.console import Console\nout = Console()\nout.save_text('x')\n",
        "from rich.console import Console\nout = Console()\nout = Mine()\nout.print('x')\n",
        "from loguru import logger\nlogger.add('x.log')\n",
        "import rich\n\n\ndef say(out):\n    out.print('x')\n",
        HELD.replace("console)\n", "console)\nLoop(other)\n", 1)
        .replace("own.print", "own.save")
        .replace("where.p", "where.P"),
        "# rich\nout = Printer()\nout.print('x')\n",
    ],
)
def test_what_prints_nothing_or_is_another_s_stays(text):
    assert once(text) == text


SCRIPT = """
import click
import torch
from rich.console import Console

out = Console(width=200)
torch.manual_seed(0)
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader(torch.randn(14, 4), batch_size=4)


@click.command()
@click.option("--epochs", default=2)
def main(epochs):
    click.echo("begin")
    for epoch in range(epochs):
        hits = 0
        for x in loader:
            y = net(x)
            loss = y.pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            hits += (y > 0).sum().item()
            out.print(f"loss {loss.item():.4f}")
        click.echo(f"epoch {epoch}: {hits}")
    out.rule("end")


main()
"""


def test_two_processes_say_what_one_said(tmp_path):
    result = migrate_text(SCRIPT)
    assert result.plan == "module" and 'on_rank_zero(out.print)(f"loss {self.batch_mean(' in result.text
    said = []
    two = ("--accelerator", "cpu", "--devices", "2", "--global-batch", "--strategy", "ddp")
    for text, start in ((SCRIPT, forked.run), (result.text, partial(forked.ptrun, *two))):
        (tmp_path / "train.py").write_text(text)
        p = start("train.py", cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        said.append(p.stdout)
    assert said[0] == said[1] and said[0].count("\n") == 12


@pytest.mark.parametrize("call", ["click.echo", "out.print", "out.rule"])
def test_what_is_said_of_a_share_is_told(call):
    text = SCRIPT.replace('out.print(f"loss {loss.item():.4f}")', f"{call}(str(y[0].item()))")
    messages = [n.message for n in migrate_text(text).attention]
    assert any("shows what the process sees" in m for m in messages)
