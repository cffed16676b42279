"""Processes that start with `fit`: the weights, the metrics and the checkpoint are this process's afterwards."""

import sys

import torch
from cells import Net, loader, weights
from ptmigrate.runtime import Trainer

if __name__ == "__main__":
    torch.manual_seed(7)
    module, trainer = Net(), Trainer(max_epochs=1, global_batch=True, **eval(f"dict({sys.argv[1]})"))
    trainer.fit(module, loader())
    trainer.save_checkpoint(sys.argv[2])
    saved = torch.load(sys.argv[2], weights_only=True)["state_dict"]
    here = all(p.device.type == "cpu" for p in module.parameters())
    same = all(torch.equal(saved[name], value) for name, value in module.state_dict().items())
    print([here, same, "torch_xla" in sys.modules and "ptmigrate.runtime.engines.xla" in sys.modules])
    print([float(trainer.callback_metrics["train_loss"]), *(w for p in weights(module) for w in p)])
