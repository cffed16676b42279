"""PTM5xx: loading, copying and speed."""

RULES: tuple[str, ...] = ()
