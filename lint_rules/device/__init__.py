"""PTM1xx: where tensors and modules are placed."""

RULES = ("hard_coded_device",)
