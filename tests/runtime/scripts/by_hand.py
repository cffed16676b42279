"""`class ManualX(ByHand, X)`: the step of X, whose training_step gives a loss, optimized by hand."""


class ByHand:
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, batch_idx):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.backward_by_hand(super().training_step(batch, batch_idx))
        optimizer.step()

    def backward_by_hand(self, loss):
        self.manual_backward(loss)
