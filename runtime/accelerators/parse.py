"""`gpus=`, `devices=` and `accelerator=` as numbers; what cannot be is refused with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import ConfigurationError, unknown_name
from . import machine, tpu

NAMES = {"cpu": "cpu", "gpu": "cuda", "cuda": "cuda", "mps": "mps", "tpu": "tpu", "auto": "auto"}
WORDS = {"cpu": "CPU", "cuda": "GPU", "mps": "MPS device", "tpu": "TPU core"}


@dataclass(frozen=True)
class Devices:
    """A kind of device and the numbers of those to use; on the CPU the numbers count processes."""

    kind: str
    numbers: tuple[int, ...]


def parse_gpus(gpus: Any) -> list[int] | None:
    """The guide's `gpus=`: a count, a list, or a string of numbers. None: no GPU. Raises ConfigurationError for the
    rest.

    None, 0 → None; 3 → [0, 1, 2]; -1, "-1" → all; [1, 3], (1, 3), "1, 3" → [1, 3]; "3" → [3]; "2," → [2].
    """
    if gpus is None or (gpus == 0 and isinstance(gpus, int) and not isinstance(gpus, bool)):
        return None
    if isinstance(gpus, str):
        return _from_text(gpus)
    if isinstance(gpus, bool) or not isinstance(gpus, (int, list, tuple)):
        raise ConfigurationError(f"gpus={gpus!r}: give a count, a list of numbers, or a string such as '0, 1'")
    if isinstance(gpus, int):
        return _checked(_all_gpus() if gpus == -1 else list(range(gpus)), gpus, negative=gpus < -1)
    if not gpus or any(type(number) is not int for number in gpus):
        raise ConfigurationError(f"gpus={gpus!r}: a list of GPUs holds their numbers, such as [0, 1]")
    return _checked(list(gpus), gpus)


def _from_text(gpus: str) -> list[int] | None:
    text = gpus.strip()
    if text == "-1":
        return _checked(_all_gpus(), gpus)
    try:
        numbers = [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise ConfigurationError(f"gpus={gpus!r}: not a list of numbers such as '0, 1'") from None
    return _checked(numbers, gpus) if numbers else None


def _all_gpus() -> list[int]:
    return list(range(machine.count("cuda") or 0))


def _checked(numbers: list[int], asked: Any, negative: bool = False) -> list[int]:
    there = machine.count("cuda") or 0
    if negative or any(number < 0 for number in numbers):
        raise ConfigurationError(f"gpus={asked!r}: a GPU's number cannot be negative (-1 alone means all of them)")
    if len(set(numbers)) < len(numbers):
        raise ConfigurationError(f"gpus={asked!r}: a GPU is named twice")
    if not numbers or any(number >= there for number in numbers):
        raise ConfigurationError(f"gpus={asked!r}: this machine has {_there('cuda', there)}")
    return numbers


def _there(kind: str, number: int | None) -> str:
    return f"{number or 'no'} {WORDS[kind]}{'' if number == 1 else 's'}"


def choose(accelerator: str | None, devices: Any, gpus: Any = None) -> Devices:
    """The devices of this node. `devices`: a count, "3" (a count too), -1 or "auto", or a list of numbers."""
    name = (accelerator or "auto").lower() if isinstance(accelerator, (str, type(None))) else accelerator
    if name not in NAMES:
        raise unknown_name("accelerator", accelerator, NAMES)
    kind = NAMES[name]
    if gpus is not None and devices is None:
        numbers = parse_gpus(gpus)
        if numbers is None:
            return Devices("cpu", (0,))
        return Devices("cuda", tuple(numbers))
    if kind == "auto":
        kind = machine.present()
    return Devices(kind, _numbers(kind, devices, machine.count(kind)))


def _numbers(kind: str, devices: Any, there: int | None) -> tuple[int, ...]:
    if there == 0:
        asked = "" if devices is None else f" with devices={devices!r}"
        lacking = tpu.absent() if kind == "tpu" else None
        raise ConfigurationError(
            f"accelerator {kind!r} was asked for{asked}, and {lacking or f'this machine has {_there(kind, 0)}'}"
        )
    if devices in (None, "auto"):
        return (0,) if there is None or devices is None else tuple(range(there))
    numbers = _asked(devices, there)
    if not numbers:
        raise ConfigurationError(f"devices={devices!r}: at least one device is needed")
    if there is not None and max(numbers) >= there:
        raise ConfigurationError(f"devices={devices!r}: this machine has {_there(kind, there)}")
    if min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise ConfigurationError(f"devices={devices!r}: numbers must be different and not negative")
    return tuple(range(len(numbers))) if there is None else tuple(numbers)


def _asked(devices: Any, there: int | None) -> Sequence[int]:
    try:
        if isinstance(devices, str):
            text = devices.strip()
            devices = [int(part) for part in text.split(",") if part.strip()] if "," in text else int(text)
        if isinstance(devices, bool) or not isinstance(devices, (int, list, tuple)):
            raise ValueError
        if isinstance(devices, int):
            if devices < -1:
                raise ValueError
            return range(there or 1) if devices == -1 else range(devices)
        if any(type(number) is not int for number in devices):
            raise ValueError
    except ValueError:
        raise ConfigurationError(f"devices={devices!r}: give a count, -1, 'auto', or a list of numbers") from None
    return devices
