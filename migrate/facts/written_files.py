"""Calls that write a file, and its path: `open(path, "w")`, `np.save(path, x)`, `frame.to_csv(path)`."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from .arguments import argument_at
from .loops import last_part

if TYPE_CHECKING:
    from .script import Facts

# what opens a path, by a mode that comes second
OPENS = {
    *(f"{n}.open" for n in "io gzip bz2 lzma codecs tarfile".split()),
    "zipfile.ZipFile",
    "tarfile.TarFile",
    "h5py.File",
}
MODE = re.compile(r"[rwxabt+]+(:\w*)?")
# functions of libraries, and where their path is: its place and its name
FUNCTIONS = {
    **{f"numpy.{n}": (0, "file") for n in "save savez savez_compressed".split()},
    "numpy.savetxt": (0, "fname"),
    "scipy.io.savemat": (0, "file_name"),
    "scipy.io.wavfile.write": (0, "filename"),
    "scipy.sparse.save_npz": (0, "file"),
    "joblib.dump": (1, "filename"),
    "cv2.imwrite": (0, "filename"),
    **{f"imageio.{v}{n}": (0, "uri") for v in ("", "v2.", "v3.") for n in "imwrite imsave mimwrite mimsave".split()},
    "matplotlib.pyplot.savefig": (0, "fname"),
    "matplotlib.pyplot.imsave": (0, "fname"),
    "matplotlib.image.imsave": (0, "fname"),
    "skimage.io.imsave": (0, "fname"),
    "scipy.misc.imsave": (0, "name"),
    "soundfile.write": (0, "file"),
    "librosa.output.write_wav": (0, "path"),
    "torchaudio.save": (0, "uri"),
    "torchvision.utils.save_image": (1, "fp"),
    "torchvision.io.write_video": (0, "filename"),
    "torchvision.io.write_png": (1, "filename"),
    "torchvision.io.write_jpeg": (1, "filename"),
    "safetensors.torch.save_file": (1, "filename"),
}
# methods that no other class has by such a name
METHODS = {
    **dict.fromkeys(("to_csv", "to_json", "to_hdf"), (0, "path_or_buf")),
    **dict.fromkeys(("to_pickle", "to_parquet", "to_feather", "to_excel"), (0, "path")),
    "savefig": (0, "fname"),
    "tofile": (0, "fid"),
}
TEXTS = ("write_text", "write_bytes")  # of a path of pathlib
PICTURE = re.compile(r"\.(png|jpe?g|gif|bmp|tiff?|pdf|svg|eps|webp)$", re.IGNORECASE)
# methods of an image that give another
OF_IMAGES = set("convert copy crop filter quantize resize rotate transform transpose".split())
# the last names of all of it
NAMES = {full.rpartition(".")[2] for full in (*OPENS, *FUNCTIONS, *METHODS, *TEXTS, "open", "save")}


class Written(NamedTuple):
    """A call that writes a file."""

    path: ast.expr
    opens: bool  # and gives back what is written to
    adds: bool = False  # at its end
    shows: bool = False  # a picture, which is there to be looked at


def written_by(facts: Facts, call: ast.Call) -> Written | None:
    """The file that a call writes as a whole, or opens to be written to."""
    opened = opened_by(facts, call)
    if opened is not None:
        said = _modes(facts, call)
        writes = bool(said) and all(set(m) & set("wxa") for m in said)
        return Written(opened, True, any("a" in m for m in said)) if writes else None
    f = call.func
    place = FUNCTIONS.get(facts.names.resolve(f) or "")
    if place is None and isinstance(f, ast.Attribute) and facts.names.resolve(f) is None:
        if f.attr in TEXTS:
            return Written(f.value, False) if call.args else None
        place = METHODS.get(f.attr)
        if f.attr == "save" and call.args and (_is_picture(call.args[0]) or _is_image(facts, f.value)):
            place = (0, "fp")
    path = argument_at(call, place[1], place[0]) if place is not None else None
    shows = last_part(f) in ("save_image", "savefig") or (last_part(f) == "save" and place == (0, "fp"))
    return Written(path, False, False, shows) if path is not None and not isinstance(path, ast.Starred) else None


def opened_by(facts: Facts, call: ast.Call) -> ast.expr | None:
    """The path of `open(path, ...)` and of `path.open(...)`, whatever it is opened for."""
    f, first = call.func, call.args[0] if call.args else None
    if isinstance(first, ast.Starred):
        return None
    if is_builtin_open(facts, f) or facts.names.resolve(f) in OPENS:
        return argument_at(call, "file", 0) or argument_at(call, "name", 0)
    if not _is_method(f, facts) or len(call.args) > 1 or (first is not None and not _said(facts, first)):
        return None
    return f.value


def is_builtin_open(facts: Facts, f: ast.expr) -> bool:
    return isinstance(f, ast.Name) and f.id == "open" and facts.scopes.scope_of(f).lookup("open") is None


def _is_method(f: ast.expr, facts: Facts) -> TypeGuard[ast.Attribute]:
    """The `open` of something that is no module."""
    return isinstance(f, ast.Attribute) and f.attr == "open" and facts.names.resolve(f) is None


def _modes(facts: Facts, call: ast.Call) -> list[str]:
    """The modes that a path may be opened by; none where that does not show."""
    mode = argument_at(call, "mode", 0 if _is_method(call.func, facts) else 1)
    return _said(facts, mode) if mode is not None else []


def _said(facts: Facts, mode: ast.expr, depth: int = 0) -> list[str]:
    """The modes that an expression may be; none where that does not show."""
    if isinstance(mode, ast.Constant):
        return [mode.value] if isinstance(mode.value, str) and MODE.fullmatch(mode.value) else []
    if isinstance(mode, ast.IfExp):
        either = [_said(facts, e, depth) for e in (mode.body, mode.orelse)]
        return [m for said in either for m in said] if all(either) else []
    home = facts.scopes.scope_of(mode).lookup(mode.id) if isinstance(mode, ast.Name) and depth < 3 else None
    if home is None or not isinstance(mode, ast.Name) or mode.id in home.params:
        return []
    given = facts.devices.assigned(mode.id, home)
    each = [_said(facts, v, depth + 1) for v in given or ()]
    return [m for said in each for m in said] if all(each) else []


def _is_image(facts: Facts, of: ast.expr, depth: int = 0) -> bool:
    """`Image.fromarray(a)`, `Image.open(path).convert("L")`, and a name that is given nothing else."""
    if isinstance(of, ast.Call):
        f = of.func
        full = facts.names.resolve(f)
        return (full or "").startswith("PIL.Image.") or (
            full is None and isinstance(f, ast.Attribute) and f.attr in OF_IMAGES and _is_image(facts, f.value, depth)
        )
    home = facts.scopes.scope_of(of).lookup(of.id) if isinstance(of, ast.Name) and depth < 3 else None
    given = facts.devices.assigned(of.id, home) if home is not None and isinstance(of, ast.Name) else None
    return bool(given) and all(_is_image(facts, v, depth + 1) for v in given or ())


def _is_picture(path: ast.expr) -> bool:
    """`"a.png"`, `f"{i}.png"`, `os.path.join(folder, "a.png")`, `folder + "a.png"`."""
    match path:
        case ast.Constant(value=str(text)):
            return PICTURE.search(text) is not None
        case ast.JoinedStr(values=[*_, last]):
            return _is_picture(last)
        case ast.BinOp(op=ast.Add() | ast.Div(), right=right):
            return _is_picture(right)
        case ast.BinOp(op=ast.Mod(), left=left):
            return _is_picture(left)
        case ast.Call(func=ast.Attribute(attr="join"), args=[*_, last]):
            return _is_picture(last)
        case ast.Call(func=ast.Attribute(value=text, attr="format")):
            return _is_picture(text)
    return False
