# ruff: noqa: E501
"""T9: what a script asks its cluster for to tell its processes where to meet goes with that; the rest is told."""

import pytest
from helpers import migrated

HEAD = """\
import os, random, socket, subprocess
import hostlist
import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

"""
MEET = "dist.init_process_group('nccl')\nmodel = DDP(torch.nn.Linear(2, 2))\n"
CODE = "PTM420"


@pytest.mark.parametrize(
    "asked",
    [
        "hosts = hostlist.expand_hostlist(os.environ['SLURM_JOB_NODELIST'])\nos.environ['MASTER_ADDR'] = hosts[0]\n",
        "nodes = os.environ['SLURM_NODELIST']\na = subprocess.getoutput(f'scontrol {nodes}')\nos.environ['MASTER_ADDR'] = a\n",
        "ids = os.environ['SLURM_STEP_GPUS'].split(',')\nos.environ['MASTER_PORT'] = str(12345 + int(min(ids)))\n",
        "name = socket.gethostbyname(socket.gethostname())\nos.environ['MASTER_ADDR'] = name\n",
    ],
)  # fmt: skip
def test_what_is_asked_for_an_address_goes(asked):
    result = migrated(HEAD + asked + MEET, CODE)
    assert result.text == HEAD + "model = torch.nn.Linear(2, 2)\n"
    assert not any("cluster" in n.message for n in result.attention)


@pytest.mark.parametrize(
    "asked",
    [
        "hosts = hostlist.expand_hostlist('a,b')\nos.environ['MASTER_ADDR'] = hosts[0]\nprint(len(hosts))\n",
        "port = random.randint(10000, 20000)\nos.environ['MASTER_PORT'] = str(port)\n",
        "seed = int(torch.randint(9, ()))\nos.environ['MASTER_PORT'] = str(12345 + seed)\n",
        "def prepare():\n    go()\n\na = prepare()\nos.environ['MASTER_ADDR'] = a\n",
        "a = 'x'\nif go:\n    a = 'y'\nos.environ['MASTER_ADDR'] = a\n",
    ],
)
def test_what_is_read_elsewhere_or_draws_stays(asked):
    kept = [line for line in asked.splitlines() if "MASTER" not in line]
    assert all(line in migrated(HEAD + asked + MEET, CODE).text for line in kept)


@pytest.mark.parametrize("name", ["SLURM_JOB_ID", "SLURM_CPUS_PER_TASK", "PBS_JOBID", "OMPI_COMM_WORLD_NODE_RANK"])
def test_what_only_a_cluster_sets_is_told_of(name):
    said = f"{CODE} line 7"
    told = migrated(f"{HEAD}job = os.environ['{name}']\n{MEET}print(job)\n", CODE).attention
    assert any(f"{n.code} line {n.line}" == said and "launcher" in n.message for n in told)


@pytest.mark.parametrize(
    "read", ["os.environ.get('SLURM_JOB_ID')", "os.getenv('PBS_JOBID', '0')", "int(os.environ['SLURM_PROCID'])", "os.environ['HOME']"]
)  # fmt: skip
def test_what_has_an_answer_anywhere_is_not(read):
    told = migrated(f"{HEAD}job = {read}\n{MEET}print(job)\n", CODE).attention
    assert not any("launcher" in n.message for n in told)


def test_branches_that_only_said_where_to_meet_go():
    meet = (
        "def meet(port=None):\n    if port is not None:\n        os.environ['MASTER_PORT'] = str(port)\n"
        "    elif 'MASTER_PORT' in os.environ:\n        pass  # as it is\n    else:\n"
        "        os.environ['MASTER_PORT'] = '29500'\n    dist.init_process_group('nccl')\n\nmeet()\n"
    )
    text = migrated(HEAD + meet + "model = DDP(torch.nn.Linear(2, 2))\n", CODE).text
    assert text == HEAD + "model = torch.nn.Linear(2, 2)\n"


def test_a_function_in_which_nothing_went_stays():
    text = migrated(f"{HEAD}def hook():\n    pass\n\nhook()\n{MEET}", CODE).text
    assert "def hook():\n    pass\n\nhook()\n" in text


@pytest.mark.parametrize(
    "sets",
    [
        "os.environ['MASTER_PORT'] = '1'",
        "os.environ['MASTER_ADDR'], os.environ['MASTER_PORT'] = 'localhost', '1'",
        "os.environ['RANK'] = os.environ['LOCAL_RANK'] = '0'",
        "os.environ.update({'MASTER_ADDR': 'localhost', 'MASTER_PORT': port})",
        "os.environ.update(MASTER_ADDR='localhost', RANK=str(rank))",
        "os.environ.setdefault('MASTER_ADDR', 'localhost')",
        "os.environ |= {'MASTER_ADDR': 'localhost', 'WORLD_SIZE': '2'}",
    ],
)
def test_what_says_where_processes_meet_goes(sets):
    assert migrated(f"{HEAD}{sets}\ngo()\n{MEET}", CODE).text == f"{HEAD}go()\nmodel = torch.nn.Linear(2, 2)\n"


@pytest.mark.parametrize(
    "sets",
    [
        "os.environ['OMP_NUM_THREADS'] = '1'",
        "os.environ['MASTER_PORT'], os.environ['OMP_NUM_THREADS'] = '1', '1'",
        "os.environ.update({'MASTER_PORT': '1', 'OMP_NUM_THREADS': '1'})",
        "os.environ.setdefault('OMP_NUM_THREADS', '1')",
        "os.environ.setdefault(key, '1')",
        "os.environ.update(settings)",
        "os.environ.update(settings, MASTER_PORT='1')",
        "os.environ.update(MASTER_PORT='1', **settings)",
        "os.environ.update({'MASTER_PORT': '1', **settings})",
        "os.environ |= settings",
        "settings |= {'MASTER_PORT': '1'}",
        "settings.update(MASTER_PORT='1')",
    ],
)
def test_what_says_more_stays(sets):
    assert f"{sets}\n" in migrated(f"{HEAD}{sets}\ngo()\n{MEET}", CODE).text


@pytest.mark.parametrize(
    ("read", "after"),
    [
        ("print(os.environ['MASTER_ADDR'])", "print(os.environ.get('MASTER_ADDR', 'localhost'))"),
        (
            "port = int(os.environ['MASTER_PORT'])\nprint(port)",
            "port = int(os.environ.get('MASTER_PORT', '29500'))\nprint(port)",
        ),
        ("print(f'at {os.environ[\"MASTER_PORT\"]}')", 'print(f\'at {os.environ.get("MASTER_PORT", "29500")}\')'),
        (
            "os.environ['MASTER_PORT'] = '12'\nprint(os.environ['MASTER_PORT'])",
            "print(os.environ.get('MASTER_PORT', '12'))",
        ),
        (
            "os.environ['MASTER_PORT'] = os.environ.get('MASTER_PORT', '12')\nprint(os.environ['MASTER_PORT'])",
            "print(os.environ.get('MASTER_PORT', '12'))",
        ),
        (
            "os.environ['MASTER_PORT'] = str(port)\nprint(os.environ['MASTER_PORT'])",
            "print(os.environ.get('MASTER_PORT', '29500'))",
        ),
        (
            "os.environ['MASTER_PORT'] = '1'\ntry:\n    port = os.environ['MASTER_PORT']\nexcept KeyError:\n    port = 0\n",
            "    port = os.environ.get('MASTER_PORT', '1')",
        ),
        (
            "try:\n    port = os.environ['MASTER_PORT']\nexcept ValueError:\n    port = 0\n",
            "    port = os.environ.get('MASTER_PORT', '29500')",
        ),
        (
            "if go:\n    os.environ['MASTER_PORT'] = '1'\nelse:\n    os.environ['MASTER_PORT'] = '2'\nprint(os.environ['MASTER_PORT'])",
            "print(os.environ.get('MASTER_PORT', '29500'))",
        ),
    ],
)
def test_where_they_meet_has_an_answer_where_nothing_says_it_any_more(read, after):
    assert after in migrated(f"{HEAD}{read}\n{MEET}", CODE).text


@pytest.mark.parametrize(
    "read",
    [
        "print(os.environ.get('MASTER_ADDR'))",
        "print(os.environ['MASTER_NAME'], os.environ[key])",
        "print(settings['MASTER_ADDR'])",
        "if 'MASTER_ADDR' in os.environ:\n    print(os.environ['MASTER_ADDR'])",
        "try:\n    print(os.environ['MASTER_ADDR'])\nexcept KeyError:\n    print('alone')",
        "try:\n    print(os.environ['MASTER_ADDR'])\nexcept (KeyError, ValueError) as error:\n    print('alone')",
        "try:\n    print(os.environ['MASTER_ADDR'])\nexcept:\n    print('alone')",
        "print(os.environ['MASTER_ADDR'] if os.getenv('MASTER_ADDR') else 'none')",
    ],
)
def test_what_is_asked_with_care_stays(read):
    assert f"{read}\n" in migrated(f"{HEAD}{read}\n{MEET}", CODE).text


def test_a_script_that_distributes_nothing_keeps_its_questions():
    text = "import os\nimport torch\nprint(os.environ['MASTER_ADDR'])\n"
    assert migrated(text, CODE).text == text


def test_a_read_that_goes_with_its_statement_goes():
    meet = "where = 'tcp://' + os.environ['MASTER_ADDR']\ndist.init_process_group('nccl', init_method=where)\n"
    assert "MASTER" not in migrated(HEAD + meet + "model = DDP(torch.nn.Linear(2, 2))\n", CODE).text
