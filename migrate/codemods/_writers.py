"""What makes a writer: rank 0 has it, and the others get one that is silent."""

WRITERS = {
    "torch.utils.tensorboard.SummaryWriter",
    "torch.utils.tensorboard.writer.SummaryWriter",
    "tensorboardX.SummaryWriter",
    "tensorboard_logger.Logger",
    "wandb.init",
    "wandb.Artifact",  # which looks for the files that it is given
    "neptune.init_run",
    "mlflow.start_run",
    "aim.Run",
    "comet_ml.Experiment",
    "comet_ml.start",
    "visdom.Visdom",
    "logging.FileHandler",
    *(f"logging.handlers.{n}Handler" for n in ("RotatingFile", "TimedRotatingFile", "WatchedFile")),
}
