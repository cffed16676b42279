"""The tests are of CPU processes, where there are GPUs too: those for a GPU find them by tests/gpus.py."""

import os

os.environ["CUDA_VISIBLE_DEVICES"] = ""
