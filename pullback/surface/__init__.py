"""Public names that are no stage of the compiler: settings, backends, hub, futures, streams, the modules of other devices."""
