"""PTM3xx: what makes the host wait for the device at every step."""

RULES = ("item_in_hot_loop",)
