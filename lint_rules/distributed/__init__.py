"""PTM4xx: what is wrong as soon as there are several processes."""

RULES: tuple[str, ...] = ()
