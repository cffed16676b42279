"""PTM1xx: where tensors and modules are placed."""

RULES = (
    "hard_coded_device",
    "device_call_in_module",
    "tensor_in_forward",
    "tensor_attribute",
    "set_device",
    "visible_devices",
    "default_tensor_type",
    "load_without_map_location",
    "cuda_before_start",
    "literal_device_ids",
)
