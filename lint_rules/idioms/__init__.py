"""PTM6xx: names and habits that torch has left behind."""

RULES: tuple[str, ...] = ()
