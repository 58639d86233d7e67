"""How a call becomes work: declarations, dispatch, generated functions, recording, overrides."""
