"""`torch.distributed.elastic.multiprocessing`: its `errors`."""
