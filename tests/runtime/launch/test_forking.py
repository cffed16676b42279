"""A fork waits until torch's threads rest, where Python may copy a lock that they hold."""

import json
import subprocess
import sys
import textwrap

import pytest
from ptmigrate.runtime.launch import forking

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="threads are read from /proc")
WORK = "hashlib.pbkdf2_hmac('sha256', b'', b'', {})"  # without the GIL
LONG, ENDS, RESTS = WORK.format(10**9), WORK.format(400_000), "time.sleep(60)"


def beside(name, work, limit=forking.LIMIT, wait="forking.wait_for_rest()", tick=forking.TICK):
    """Has a thread of this name ended its work when the wait is over, and how many seconds did that take?"""
    code = f"""
        import ctypes, hashlib, json, os, sys, threading, time
        from ptmigrate.runtime.launch import forking

        forking.LIMIT, forking.TICK, started, ended = {limit}, {tick}, threading.Event(), threading.Event()
        def run():
            ctypes.CDLL(None).prctl(15, {name!r}.encode())
            started.set()
            {work}
            ended.set()
            time.sleep(60)
        threading.Thread(target=run, daemon=True).start()
        started.wait()
        time.sleep(0.02)
        begun = time.perf_counter()
        {wait}
        print(json.dumps([ended.is_set(), time.perf_counter() - begun]), flush=True)
        os._exit(0)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=100)
    assert not done.stderr
    return json.loads(done.stdout)


def test_waits_until_a_thread_of_torch_rests():
    ended, _ = beside("pt_gloo_runloop", ENDS, limit=60)
    assert ended


def test_not_for_ever():
    _, seconds = beside("pt_gloo_runloop", LONG)
    assert seconds >= forking.LIMIT


def test_one_that_wakes_again_and_again_does_not_rest():
    _, seconds = beside("pt_gloo_runloop", "while True: time.sleep(0.001)", tick=0.05)
    assert seconds >= forking.LIMIT


@pytest.mark.parametrize(("name", "work"), [("pt_gloo_runloop", RESTS), ("own", LONG), ("own", RESTS)])
def test_goes_on_at_once(name, work):
    _, seconds = beside(name, work, limit=60)
    assert seconds < 30


@pytest.mark.skipif(sys.version_info >= forking.MENDED, reason="this Python makes the lock anew first")
def test_every_fork_of_a_rank_waits():
    connected = "from ptmigrate.runtime.launch import watch; watch.watch(0, sys.excepthook)"
    forks = "begun = time.perf_counter(); pid = os.fork() or os._exit(0); os.waitpid(pid, 0)"
    _, seconds = beside("pt_gloo_runloop", LONG, wait=f"{connected}; {forks}")
    assert seconds >= forking.LIMIT
