"""PTM2xx: what cannot be handed to another process."""

RULES = ("unpicklable_lambda",)
