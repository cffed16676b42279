"""PTM204: an open file or connection in a module or data set."""

from __future__ import annotations

import ast

from ..file import File
from .held import Held, called

FILES = {
    "open", "io.open", "gzip.open", "bz2.open", "lzma.open", "tarfile.open", "h5py.File", "zipfile.ZipFile",
    "tables.open_file", "netCDF4.Dataset", "codecs.open",
}  # fmt: skip
CONNECTIONS = {
    "sqlite3.connect", "lmdb.open", "socket.socket", "requests.Session", "psycopg2.connect", "redis.Redis",
    "pymongo.MongoClient", "boto3.client", "boto3.resource", "urllib3.PoolManager", "pymysql.connect",
    "redis.StrictRedis", "mysql.connector.connect", "aiohttp.ClientSession", "grpc.insecure_channel",
}  # fmt: skip


class OpenFile(Held):
    code = "PTM204"
    name = "open-file-in-state"
    why = (
        "An open file or connection cannot be sent to another process, and forked workers that share one read over "
        "each other. Open it on first use in each process (in `__getitem__`), or keep its path."
    )

    BAD = """
        import h5py
        import torch
        class Data(torch.utils.data.Dataset):
            def __init__(self, path):
                self.file = h5py.File(path, "r")
        """
    GOOD = """
        import h5py
        import torch
        class Data(torch.utils.data.Dataset):
            def __init__(self, path):
                self.path = path
                self.file = None
            def __getitem__(self, i):
                if self.file is None:
                    self.file = h5py.File(self.path, "r")
                return self.file["x"][i]
        """

    def held(self, value: ast.expr, file: File) -> str | None:
        name = called(value, file)
        if name in FILES or _opens_path(value, file):
            return "an open file"
        return "a connection" if name in CONNECTIONS or _is_cursor(value) else None


def _opens_path(value: ast.expr, file: File) -> bool:
    """`Path(p).open()`"""
    if not (isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "open"):
        return False
    start = value.func.value
    return isinstance(start, ast.Call) and file.resolve(start.func) == "pathlib.Path"


def _is_cursor(value: ast.expr) -> bool:
    """`self.db.cursor()`, and `connect(...).cursor()`"""
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and value.func.attr == "cursor"
