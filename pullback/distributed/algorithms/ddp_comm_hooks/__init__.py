"""What may stand in the place of averaging gradients in `DistributedDataParallel`."""
