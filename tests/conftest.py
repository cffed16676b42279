"""The tests are of CPU processes, where there are GPUs too: those for a GPU find them by tests/gpus.py.

Each has one thread: several run at once, and threads that wait for one another turn round and round.
"""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("OMP_NUM_THREADS", "1")
