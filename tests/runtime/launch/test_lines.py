"""What ranks print: each line is whole, however many ranks write at once."""

from tests.runtime.launching import ptrun

SCRIPT = """
import ptmigrate.runtime, os, sys
print("whole", [(s.line_buffering, s.write_through) for s in (sys.stdout, sys.stderr)])
for i in range(2000):
    print("rank", os.environ["RANK"], "says", i)
    print("rank", os.environ["RANK"], "warns", i, file=sys.stderr)
"""


def test_the_lines_of_two_ranks_stay_whole(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    done = ptrun("--accelerator", "cpu", "--devices", "2", str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("whole [(True, False), (True, False)]\n") == 2
    for word, output in (("says", done.stdout), ("warns", done.stderr)):
        wanted = [f"rank {rank} {word} {i}" for rank in (0, 1) for i in range(2000)]
        assert sorted(line for line in output.splitlines() if word in line) == sorted(wanted)
